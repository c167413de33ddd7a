// Checked access to a JSON object of a file that is not trusted: each field has the expected type, or the
// error names the file, the key and the value found.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.h"

namespace tierd {

// Encodes any bytes as JSON: a string if they are UTF-8, otherwise {"hex": "e296"}.
nlohmann::ordered_json string_to_json(const std::string& bytes);
bool string_from_json(const nlohmann::json& value, std::string& out);

class ManifestFields {
 public:
  // `path`: position of the object in the file, as "sites[3]"; empty for the top. Views must outlive this.
  ManifestFields(const nlohmann::json& object, std::string_view file, std::string path)
      : object_(object), file_(file), path_(std::move(path)) {}

  Error error(std::string_view key, std::string_view detail) const;

  bool has(std::string_view key) const { return object_.contains(key); }
  Status read(std::string_view key, bool& out) const;
  Status read(std::string_view key, uint32_t& out) const;
  Status read(std::string_view key, uint64_t& out) const;
  Status read(std::string_view key, float& out) const;        // finite
  Status read(std::string_view key, std::string& out) const;  // any bytes

  // Calls each(element, index) for an array, until one fails.
  template <class Each>
  Status read_each(std::string_view key, Each&& each) const {
    TIERD_ASSIGN(const nlohmann::json* array, member(key));
    if (!array->is_array()) return wrong_type(key, *array, "an array");
    size_t index = 0;
    for (const nlohmann::json& element : *array) TIERD_TRY(each(element, index++));
    return {};
  }
  Result<ManifestFields> object(std::string_view key) const;
  // Returns the element `value` of the array `key` as an object.
  Result<ManifestFields> element(std::string_view key, size_t index, const nlohmann::json& value) const;
  Result<const nlohmann::json*> member(std::string_view key) const;
  Error wrong_type(std::string_view key, const nlohmann::json& found, std::string_view expected) const;

 private:
  Result<uint64_t> whole_number(std::string_view key, uint64_t most) const;
  std::string path_of(std::string_view key) const;

  const nlohmann::json& object_;
  std::string_view file_;
  std::string path_;
};

}  // namespace tierd
