// Figures and rows of Markdown tables.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "tools/measurement/summary.h"

namespace tierd {

// Formats three digits, without an exponent.
std::string figure(double value);
// Formats the least and the most as "0.800 – 1.25".
std::string range_text(const Summary& summary);
// Formats "3.75 GB"; an empty value becomes "varies": it differs between the points of a sweep.
std::string bytes_text(std::optional<double> bytes);
// Formats a word or a number; an empty value becomes "varies".
template <class T>
std::string word(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "varies";
}

std::string table_row(const std::vector<std::string>& cells);
// The first `texts` columns are text, the others figures.
std::string table_head(const std::vector<std::string>& cells, size_t texts = 1);

}  // namespace tierd
