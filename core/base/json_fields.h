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

// Parses a file whose root must be an object. Errors: those of read_whole_file and of parse_json.
Result<nlohmann::json> read_json_file(const std::string& path, uint64_t most_bytes,
                                      uint64_t most_values = UINT64_MAX);

// Encodes any bytes as JSON: a string if they are UTF-8, otherwise {"hex": "e296"}.
nlohmann::ordered_json string_to_json(const std::string& bytes);
bool string_from_json(const nlohmann::json& value, std::string& out);

// The fields of one object, which must outlive this. A null field counts as absent. A getter without a
// fallback fails if the field is absent; every getter fails (corrupt) on another type or range.
class JsonFields {
 public:
  // `path`: the position of the object in the file, as "sites[3]"; empty for the root.
  static Result<JsonFields> of(const nlohmann::json& object, std::string origin, std::string path = "");
  // The same without a check: every field of a value that is no object is missing.
  JsonFields(const nlohmann::json& object, std::string origin, std::string path = "")
      : object_(&object), origin_(std::move(origin)), path_(std::move(path)) {}

  bool has(std::string_view key) const { return get(key) != nullptr; }
  Result<uint32_t> u32(std::string_view key, std::optional<uint32_t> fallback = {}) const;
  Result<float> f32(std::string_view key, std::optional<float> fallback = {}) const;
  Result<bool> flag(std::string_view key, std::optional<bool> fallback = {}) const;
  Result<std::string> text(std::string_view key, std::optional<std::string> fallback = {}) const;
  Result<uint64_t> whole(std::string_view key, uint64_t most) const;
  // Reads one number or a list of them; empty if absent.
  Result<std::vector<uint32_t>> u32_list(std::string_view key) const;
  // The same, with a sign.
  Result<std::vector<int64_t>> integers(std::string_view key) const;

  Status read(std::string_view key, bool& out) const { return set(out, flag(key)); }
  Status read(std::string_view key, uint32_t& out) const { return set(out, u32(key)); }
  Status read(std::string_view key, uint64_t& out) const { return set(out, whole(key, UINT64_MAX)); }
  Status read(std::string_view key, float& out) const { return set(out, f32(key)); }
  Status read(std::string_view key, std::string& out) const;  // any bytes, of string_to_json

  // Calls each(element, index) for an array, until one fails.
  template <class Each>
  Status read_each(std::string_view key, Each&& each) const {
    TIERD_ASSIGN(const nlohmann::json* array, member(key));
    if (!array->is_array()) return wrong(key, *array, "an array");
    size_t index = 0;
    for (const nlohmann::json& element : *array) TIERD_TRY(each(element, index++));
    return {};
  }
  Result<JsonFields> object(std::string_view key) const;
  // Returns the element `value` of the array `key` as an object.
  Result<JsonFields> element(std::string_view key, size_t index, const nlohmann::json& value) const;
  // Returns the value, which may be null.
  Result<const nlohmann::json*> member(std::string_view key) const;

  // Checks a value of this object: that of `key`, or an element of it.
  Result<uint64_t> as_whole(std::string_view key, const nlohmann::json& value, uint64_t most) const;
  Result<float> as_float(std::string_view key, const nlohmann::json& value) const;

  const std::string& origin() const { return origin_; }
  Error error(Code code, std::string_view key, std::string_view detail) const;
  Error error(std::string_view key, std::string_view detail) const {
    return error(Code::corrupt, key, detail);
  }
  Error wrong(std::string_view key, const nlohmann::json& found, std::string_view expected) const;
  // Writes a line to standard error about a field whose value is unusual but can be used.
  void warn(std::string_view key, std::string_view detail) const;

 private:
  template <class T>
  static Status set(T& out, Result<T> value) {
    TIERD_ASSIGN(out, std::move(value));
    return {};
  }
  const nlohmann::json* get(std::string_view key) const;
  Error absent(std::string_view key) const { return error(key, "is missing"); }
  std::string path_of(std::string_view key) const;

  const nlohmann::json* object_;
  std::string origin_;
  std::string path_;
};

}  // namespace tierd
