// The fields of a trace's header, which is untrusted JSON: each field is checked, and the first error is
// kept.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json_fields.h"
#include "core/base/result.h"
#include "core/config/config.h"

namespace tierd {

class HeaderFields {
 public:
  using json = nlohmann::json;

  // `origin` names the file in errors, which are `corrupt`.
  explicit HeaderFields(const std::string& origin) : origin_(origin + ": header") {}

  const json& at(const json& object, const char* key) {
    static const json nothing;
    const json* const value = keep(JsonFields(object, origin_).member(key));
    return value == nullptr ? nothing : *value;
  }
  uint64_t number(const json& object, const char* key, uint64_t most) {
    return keep(JsonFields(object, origin_).whole(key, most));
  }
  bool flag(const json& object, const char* key) { return keep(JsonFields(object, origin_).flag(key)); }
  std::string text(const json& object, const char* key) {
    return keep(JsonFields(object, origin_).text(key));
  }
  const json& list(const json& object, const char* key, uint64_t most) {
    static const json empty = json::array();
    const json& value = at(object, key);
    if (value.is_array() && value.size() <= most) return value;
    fail(key, fmt::format("is not a list of at most {}", most));
    return empty;
  }
  // Reads at most `cap` numbers, each at most `most`.
  void numbers(const json& object, const char* key, uint64_t cap, uint64_t most,
               std::vector<uint32_t>& numbers) {
    for (const json& value : list(object, key, cap)) {
      numbers.push_back(static_cast<uint32_t>(keep(JsonFields(object, origin_).as_whole(key, value, most))));
      if (!good()) return;
    }
  }
  StrategyConfig strategy(const json& header, const char* kind) {
    StrategyConfig config;
    const json& object = at(header, kind);
    config.name = text(object, "name");
    config.tensors = text(object, "tensors");
    const json& settings = at(object, "settings");
    if (!settings.is_object()) {
      fail("settings", "is not a table");
      return config;
    }
    for (const auto& [key, value] : settings.items()) {
      Setting setting{key, {}, origin_};
      if (value.is_number_integer())
        setting.value = value.get<int64_t>();
      else if (value.is_number())
        setting.value = value.get<double>();
      else if (value.is_boolean())
        setting.value = value.get<bool>();
      else if (value.is_string())
        setting.value = value.get<std::string>();
      else
        fail(kind, fmt::format("has no value for '{}'", key));
      config.settings.push_back(std::move(setting));
    }
    return config;
  }
  void fail(const char* key, const std::string& what) {
    if (good()) error_ = {Code::corrupt, origin_, fmt::format("{}: {}", key, what)};
  }
  bool good() const { return error_.code == Code::ok; }
  const Error& error() const { return error_; }

 private:
  template <class T>
  T keep(Result<T> read) {
    if (read.ok()) return *std::move(read);
    if (good()) error_ = read.error();
    return T();
  }

  std::string origin_;
  Error error_{Code::ok, {}, {}};
};

}  // namespace tierd
