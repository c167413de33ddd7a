// What a plugin declared it can be told, and what it is told.
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

// Whether a plugin declares its parameters soundly: names, types, a default that fits its own bounds.
// `origin` is named in errors. Error: plugin_fault.
Status check_declarations(const tierd_plugin& plugin, const std::string& origin);

class Parameters {
 public:
  using Value = std::variant<int64_t, double, bool, std::string>;

  Parameters() = default;
  // The defaults of `plugin`, and over them `settings`. Errors, one a line: a key that was not declared (with
  // the nearest that was, or of `other_keys`, which the host itself reads in the same table), a wrong type, a
  // value out of its bounds. invalid_argument. `table`: the table of the configuration that has the settings,
  // for errors; empty: the plugin's kind.
  static Result<Parameters> read(const tierd_plugin& plugin, const std::vector<Setting>& settings,
                                 std::span<const std::string_view> other_keys = {},
                                 std::string_view table = {});

  // NULL when there is none of that name and type.
  template <class T>
  const T* get(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : std::get_if<T>(&found->second);
  }

  // A parameter was set to something else than its default, and declared as lossy.
  bool lossy() const { return lossy_; }
  // Likewise, and declared as lossy by what memories hold.
  bool lossy_by_memory() const { return lossy_by_memory_; }
  // All of them, as they are, for reports.
  const std::map<std::string, Value, std::less<>>& values() const { return values_; }

 private:
  std::map<std::string, Value, std::less<>> values_;
  bool lossy_ = false;
  bool lossy_by_memory_ = false;
};

// The declared parameter number `i`: they lie param_size apart.
const tierd_param& param(const tierd_plugin& plugin, uint32_t i);

// What it takes: "whole number within 0 and 63", "one of a, b".
std::string describe_values(const tierd_param& param);

}  // namespace tierd
