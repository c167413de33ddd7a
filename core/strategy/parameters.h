// The parameters that a plugin declares, and their configured values.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/base/setting.h"
#include "tierd/plugin.h"

namespace tierd {

// Checks a plugin's parameter declarations: names, types, defaults within their bounds. Errors name `origin`.
// Error: plugin_fault.
Status check_declarations(const tierd_plugin& plugin, const std::string& origin);

class Parameters {
 public:
  using Value = std::variant<int64_t, double, bool, std::string>;

  Parameters() = default;
  // Returns the defaults of `plugin`, overridden by `settings`. Error: invalid_argument, one line for each
  // undeclared key (with the nearest declared one, or of `other_keys`, which the host itself reads), wrong
  // type, and value out of bounds. `table`: the table of the settings, for errors; empty: the plugin's kind.
  static Result<Parameters> read(const tierd_plugin& plugin, const std::vector<Setting>& settings,
                                 std::span<const std::string_view> other_keys = {},
                                 std::string_view table = {});

  // Returns NULL if there is no parameter of that name and type.
  template <class T>
  const T* get(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : std::get_if<T>(&found->second);
  }

  // Returns whether a parameter that is declared as lossy differs from its default.
  bool lossy() const { return lossy_; }
  // Returns whether a parameter that is declared as lossy by memory differs from its default.
  bool lossy_by_memory() const { return lossy_by_memory_; }
  // Returns all values, for reports.
  const std::map<std::string, Value, std::less<>>& values() const { return values_; }

 private:
  std::map<std::string, Value, std::less<>> values_;
  bool lossy_ = false;
  bool lossy_by_memory_ = false;
};

// Returns declared parameter number `i`; the array's stride is the plugin's param_size.
const tierd_param& param(const tierd_plugin& plugin, uint32_t i);

// Describes the values that a parameter accepts: "whole number within 0 and 63", "one of a, b".
std::string describe_values(const tierd_param& param);

}  // namespace tierd
