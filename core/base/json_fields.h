// Parses untrusted JSON without exceptions and reads it field by field; errors name the file and the key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/result.h"

namespace tierd {

// Errors: corrupt for bad syntax, nesting deeper or numbers longer than any model's files need, more than
// `most_values` values (each takes 16 bytes of memory), or a key that occurs twice in one object.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view origin,
                                  uint64_t most_values = UINT64_MAX);

// The fields of one object, which must outlive this. A null field counts as absent. A getter without a
// fallback fails if the field is absent; every getter fails (corrupt) on another type or range.
class JsonFields {
 public:
  // `prefix` precedes keys in messages: "rope_scaling." for a nested object.
  static Result<JsonFields> of(const nlohmann::json& object, std::string origin, std::string prefix = "");

  bool has(const char* key) const { return get(key) != nullptr; }
  Result<uint32_t> u32(const char* key, std::optional<uint32_t> fallback = {}) const;
  Result<float> f32(const char* key, std::optional<float> fallback = {}) const;
  Result<bool> flag(const char* key, std::optional<bool> fallback = {}) const;
  Result<std::string> text(const char* key, std::optional<std::string> fallback = {}) const;
  // Reads one number or a list of them; empty if absent.
  Result<std::vector<uint32_t>> u32_list(const char* key) const;
  // The same, with a sign.
  Result<std::vector<int64_t>> integers(const char* key) const;
  // `has(key)` must hold.
  Result<JsonFields> object(const char* key) const;

  const std::string& origin() const { return origin_; }
  Error error(Code code, const char* key, std::string_view detail) const;
  // Writes a line to standard error about a field whose value is unusual but can be used.
  void warn(const char* key, std::string_view detail) const;

 private:
  JsonFields(const nlohmann::json& object, std::string origin, std::string prefix)
      : object_(&object), origin_(std::move(origin)), prefix_(std::move(prefix)) {}
  const nlohmann::json* get(const char* key) const;
  Error absent(const char* key) const;
  Error wrong(const char* key, const nlohmann::json& found, std::string_view expected) const;
  Result<uint32_t> as_u32(const char* key, const nlohmann::json& value) const;

  const nlohmann::json* object_;
  std::string origin_;
  std::string prefix_;
};

}  // namespace tierd
