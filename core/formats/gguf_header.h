// The header of a GGUF file: metadata and the list of tensors. No number in it is used before it was checked
// against the size of the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/file.h"
#include "core/base/result.h"
#include "core/model/layout/encoding.h"

namespace tierd {

enum class GgufType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

constexpr std::array<std::string_view, 13> names_of(GgufType) {
  return {"u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};
}

inline constexpr uint64_t kMaxGgufTextBytes = 16 << 20;  // the longest values are chat templates

// The position of an array whose elements are read only on request.
struct GgufArray {
  GgufType type = GgufType::u8;  // of the elements; never array
  uint64_t count = 0;
  uint64_t offset = 0;  // of the first element
};

using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string, GgufArray>;

struct GgufTensor {
  std::string name;
  Encoding encoding = Encoding::f32;
  uint64_t rows = 0;      // 1 for a vector
  uint64_t cols = 0;      // GGUF's first dimension
  uint64_t matrices = 1;  // of experts, one after the other; `rows` counts the rows of all
  uint64_t offset = 0;    // in the file
};

class GgufHeader {
 public:
  // Versions 2 and 3, little-endian. Checks that keys and names are unique, that counts, lengths and offsets
  // are inside the file, and that tensors are aligned and do not overlap. Errors: corrupt with the offset or
  // key; unsupported for other versions, big-endian files, more than two dimensions (three for experts) and
  // other tensor types.
  static Result<GgufHeader> read(const File& file);

  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find(std::string_view name) const;

  // Metadata by key. Without a fallback an absent key is an error; a value of another type is always one.
  bool has(const std::string& key) const { return values_.contains(key); }
  bool has_array_of(const std::string& key, GgufType type) const;
  std::vector<std::string> keys(std::string_view prefix) const;  // sorted
  Result<uint32_t> u32(const std::string& key, std::optional<uint32_t> fallback = {}) const;
  // Reads a number that holds for every layer: one value, or a list with one for each of `layers`, all equal.
  Result<uint32_t> u32_of_layers(const File& file, const std::string& key, uint32_t layers,
                                 std::optional<uint32_t> fallback = {}) const;
  // Reads a whole number of any type; a u64 above INT64_MAX becomes INT64_MAX.
  Result<int64_t> integer(const std::string& key) const;
  Result<float> f32(const std::string& key, std::optional<float> fallback = {}) const;
  Result<bool> flag(const std::string& key, std::optional<bool> fallback = {}) const;
  Result<std::string> text(const std::string& key, std::optional<std::string> fallback = {}) const;
  // Read arrays of at most `limit` elements from `file`, which is the header's file. Empty if the key is
  // absent.
  Result<std::vector<std::string>> strings(const File& file, const std::string& key, uint64_t limit) const;
  Result<std::vector<float>> floats(const File& file, const std::string& key, uint64_t limit) const;
  // Reads whole numbers of any type; a u64 above INT64_MAX becomes INT64_MAX.
  Result<std::vector<int64_t>> integers(const File& file, const std::string& key, uint64_t limit) const;

  // Writes a line to standard error about a key whose value is unusual but can be used.
  void warn(const std::string& key, std::string_view detail) const;
  Error error(Code code, const std::string& key, std::string_view detail) const;

 private:
  const GgufValue* get(const std::string& key) const;
  Error absent(const std::string& key) const;
  Result<GgufArray> array(const std::string& key, GgufType type, uint64_t limit) const;

  std::string path_;
  std::unordered_map<std::string, GgufValue> values_;
  std::vector<GgufTensor> tensors_;

  friend class GgufParser;
};

}  // namespace tierd
