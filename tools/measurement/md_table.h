// Figures and rows of Markdown tables.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tierd {

// Formats three digits, without an exponent.
std::string figure(double value);
std::string figure(const nlohmann::json& number);
// Formats {"least", "most"} as "0.800 – 1.25".
std::string range_text(const nlohmann::json& summary);
// Formats "3.75 GB"; null becomes "varies": it stands for a value that differs between the points of a sweep.
std::string bytes_text(const nlohmann::json& bytes);
// Formats a word or a number; null becomes "varies".
std::string word(const nlohmann::json& value);

std::string table_row(const std::vector<std::string>& cells);
// The first `texts` columns are text, the others figures.
std::string table_head(const std::vector<std::string>& cells, size_t texts = 1);

}  // namespace tierd
