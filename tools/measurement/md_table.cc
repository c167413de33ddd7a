#include "tools/measurement/md_table.h"

#include "core/base/units.h"

namespace tierd {

std::string figure(double value) {
  if (value == 0) return "0";
  return fmt::format("{:.{}f}", value, value < 0.995 ? 3 : (value < 99.5 ? 2 : 1));
}

std::string range_text(const Summary& summary) {
  return fmt::format("{} – {}", figure(summary.least), figure(summary.most));
}

std::string bytes_text(std::optional<double> bytes) {
  return bytes ? format_bytes(*bytes) : "varies";
}

std::string table_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}

std::string table_head(const std::vector<std::string>& cells, size_t texts) {
  std::string line = table_row(cells) + "|";
  for (size_t i = 0; i < cells.size(); ++i) line += i < texts ? "---|" : "---:|";
  return line + "\n";
}

}  // namespace tierd
