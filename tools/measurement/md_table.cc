#include "tools/measurement/md_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/units.h"

namespace tierd {

using nlohmann::json;

std::string figure(double value) {
  if (value == 0) return "0";
  return fmt::format("{:.{}f}", value, value < 0.995 ? 3 : (value < 99.5 ? 2 : 1));
}
std::string figure(const json& number) {
  return figure(number.get<double>());
}

std::string range_text(const json& summary) {
  return fmt::format("{} – {}", figure(summary["least"]), figure(summary["most"]));
}

std::string bytes_text(const json& bytes) {
  return bytes.is_null() ? "varies" : format_bytes(bytes.get<double>());
}

std::string word(const json& value) {
  if (value.is_null()) return "varies";
  return value.is_string() ? value.get<std::string>() : value.dump();
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
