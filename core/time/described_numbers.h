// Reads the keys of a machine's description: rates, times and counts within bounds, so that no virtual time
// computed from them overflows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <toml++/toml.h>

#include "core/base/result.h"

namespace tierd {

// Keeps the first error, invalid_argument naming the file and the key.
class DescribedNumbers {
 public:
  using View = toml::node_view<const toml::node>;

  explicit DescribedNumbers(std::string path) : path_(std::move(path)) {}

  double read(const View& node, const std::string& key, double least = 1) {
    return read(node, key, least, kMost);
  }
  // Reads a number of bytes or operations a second.
  double rate(const View& node, const std::string& key) { return read(node, key, kLeastRate); }
  uint32_t whole(const View& node, const std::string& key, uint32_t least, uint32_t most);
  // Returns "" if there is none.
  std::string text(const View& node, const std::string& key);
  const toml::array& list(const View& node, const std::string& key);
  // Returns an empty table if there is none.
  const toml::table& table(const View& node, const std::string& key);
  void refuse_others(const toml::table& table, const std::string& key,
                     std::initializer_list<std::string_view> known);
  void fail(const std::string& what) {
    if (!error_) error_ = {Code::invalid_argument, path_, what};
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  static constexpr double kMost = 1e18;
  static constexpr double kLeastRate = 1e3;
  double read(const View& node, const std::string& key, double least, double most);

  std::string path_;
  std::optional<Error> error_;
};

// A table of a description, with the full names of its keys.
class DescribedTable {
 public:
  using View = DescribedNumbers::View;

  DescribedTable(DescribedNumbers& numbers, const View& table, std::string key)
      : numbers_(numbers), table_(table), key_(std::move(key)) {}

  void refuse_others(std::initializer_list<std::string_view> known) {
    numbers_.refuse_others(numbers_.table(table_, key_), key_, known);
  }
  bool has(std::string_view key) const { return static_cast<bool>(table_[key]); }
  double read(std::string_view key, double least = 1) { return numbers_.read(table_[key], full(key), least); }
  double rate(std::string_view key) { return numbers_.rate(table_[key], full(key)); }
  double rate_if_given(std::string_view key) { return has(key) ? rate(key) : 0; }
  double time(std::string_view key) { return read(key, 0); }
  uint32_t whole(std::string_view key, uint32_t most, uint32_t least = 1) {
    return numbers_.whole(table_[key], full(key), least, most);
  }
  std::string text(std::string_view key) { return numbers_.text(table_[key], full(key)); }
  // Returns "" for anything but a text.
  std::string word(std::string_view key) const { return table_[key].value_or(std::string()); }
  DescribedTable inner(std::string_view key) {
    return {numbers_, View(numbers_.table(table_[key], full(key))), full(key)};
  }
  // Returns the elements of a list that must have some.
  std::vector<DescribedTable> list(std::string_view key) {
    std::vector<DescribedTable> tables;
    for (const toml::node& node : numbers_.list(table_[key], full(key)))
      tables.emplace_back(numbers_, View(node), full(key));
    return tables;
  }
  View operator[](std::string_view key) const { return table_[key]; }
  // `what` follows the full name of the key.
  void fail(std::string_view key, const std::string& what) { numbers_.fail("'" + full(key) + "'" + what); }

 private:
  std::string full(std::string_view key) const {
    return key_.empty() ? std::string(key) : key_ + "." + std::string(key);
  }

  DescribedNumbers& numbers_;
  View table_;
  std::string key_;
};

}  // namespace tierd
