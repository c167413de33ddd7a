#include "core/time/described_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace tierd {

double DescribedNumbers::read(const View& node, const std::string& key, double least, double most) {
  const std::optional<double> number = node.is_number() ? node.value<double>() : std::nullopt;
  if (number && *number >= least && *number <= most) return *number;
  fail(fmt::format("'{}' is {}; a number from {} to {} is expected", key,
                   number ? fmt::format("{}", *number)
                   : node ? "none"
                          : "missing",
                   least, most));
  return least;
}

uint32_t DescribedNumbers::whole(const View& node, const std::string& key, uint32_t least, uint32_t most) {
  const double number = read(node, key, least, most);
  if (number != std::floor(number)) fail(fmt::format("'{}' is {}; a whole number is expected", key, number));
  return static_cast<uint32_t>(number);
}

std::string DescribedNumbers::text(const View& node, const std::string& key) {
  if (node && !node.is_string()) fail(fmt::format("'{}' is no text", key));
  return node.value_or(std::string());
}

const toml::array& DescribedNumbers::list(const View& node, const std::string& key) {
  static const toml::array kNone;
  const toml::array* array = node.as_array();
  if (array != nullptr && !array->empty()) return *array;
  fail(fmt::format("'{}' is missing; tier-calibrate writes it", key));
  return kNone;
}

const toml::table& DescribedNumbers::table(const View& node, const std::string& key) {
  static const toml::table kNone;
  if (node && !node.is_table()) fail(fmt::format("'{}' is no table", key));
  return node.is_table() ? *node.as_table() : kNone;
}

void DescribedNumbers::refuse_others(const toml::table& table, const std::string& key,
                                     std::initializer_list<std::string_view> known) {
  for (const auto& [found, node] : table) {
    if (std::ranges::find(known, found.str()) != known.end()) continue;
    fail(fmt::format("'{}.{}' is no key of a description; known are {}", key, found.str(),
                     fmt::join(known, ", ")));
  }
}

}  // namespace tierd
