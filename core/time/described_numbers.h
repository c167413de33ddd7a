// Reads the keys of a machine's description: rates, times and counts within bounds, so that no virtual time
// computed from them overflows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace tierd
