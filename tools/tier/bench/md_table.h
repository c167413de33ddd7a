// Figures and rows of the tables for a person.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tierd {

// Three digits, without an exponent.
std::string figure(double value);
std::string figure(const nlohmann::json& number);
// "0.800 – 1.25" of {"least", "most"}.
std::string range_text(const nlohmann::json& summary);
// "3.75 GB"; "varies" of null, which stands for what differs between the points of a sweep.
std::string bytes_text(const nlohmann::json& bytes);
// A word or a number, "varies" of null.
std::string word(const nlohmann::json& value);

std::string table_row(const std::vector<std::string>& cells);
// The first `texts` columns are text, the others are figures.
std::string table_head(const std::vector<std::string>& cells, size_t texts = 1);

}  // namespace tierd
