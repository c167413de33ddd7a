// The lines of a report for people, and the numbers in them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"

namespace tierd {

// Label and text of each line. A line that continues the one above has no label.
using ReportLines = std::vector<std::pair<std::string, std::string>>;

inline std::string text_of(const ReportLines& lines) {
  std::string text;
  for (const auto& [label, value] : lines) text += fmt::format("  {:<12} {}\n", label, value);
  return text;
}

inline void append(ReportLines& lines, ReportLines more) {
  for (auto& line : more) lines.push_back(std::move(line));
}

inline constexpr double kMs = 1e-6;  // ns to ms

template <typename Number>
double per(Number value, uint64_t count) {
  return count == 0 ? 0 : static_cast<double>(value) / static_cast<double>(count);
}
// Returns ms for each of `count`.
inline double ms_each(uint64_t ns, uint64_t count) {
  return per(static_cast<double>(ns) * kMs, count);
}

template <typename Number>
std::string size_text(Number bytes) {
  return format_bytes(static_cast<double>(bytes));
}

}  // namespace tierd
