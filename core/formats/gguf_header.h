// What a GGUF file says before its data: metadata and the list of tensors. Every number in it is taken for a
// lie until it fits the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

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

std::string_view name(GgufType type);

inline constexpr uint64_t kMaxGgufTextBytes = 16 << 20;  // the longest values are chat templates

// An array stays in the file until somebody asks for it.
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
  uint64_t matrices = 1;  // of so many experts, one after the other; the rows are those of all
  uint64_t offset = 0;    // in the file
};

class GgufHeader {
 public:
  // Versions 2 and 3, little-endian. Checks that keys and names are unique, counts, lengths and offsets lie
  // in the file, tensors are aligned and do not overlap. Errors: corrupt with the offset or key; unsupported
  // for other versions, big-endian files, more than two dimensions (of experts three) and other tensor types.
  static Result<GgufHeader> read(const File& file);

  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find(std::string_view name) const;

  // Metadata by key. Without a fallback an absent key is an error; another type is one always.
  bool has(const std::string& key) const { return values_.contains(key); }
  bool has_array_of(const std::string& key, GgufType type) const;
  std::vector<std::string> keys(std::string_view prefix) const;  // in order
  Result<uint32_t> u32(const std::string& key, std::optional<uint32_t> fallback = {}) const;
  // A number of every layer: one value, or a list with one for each of `layers`, all of them equal.
  Result<uint32_t> u32_of_layers(const File& file, const std::string& key, uint32_t layers,
                                 std::optional<uint32_t> fallback = {}) const;
  // Reads a whole number of any type; one of u64 that does not fit is INT64_MAX.
  Result<int64_t> integer(const std::string& key) const;
  Result<float> f32(const std::string& key, std::optional<float> fallback = {}) const;
  Result<bool> flag(const std::string& key, std::optional<bool> fallback = {}) const;
  Result<std::string> text(const std::string& key, std::optional<std::string> fallback = {}) const;
  // Arrays, read from `file`, which must be the one this header was read from; at most `limit` elements.
  // Empty where absent.
  Result<std::vector<std::string>> strings(const File& file, const std::string& key, uint64_t limit) const;
  Result<std::vector<float>> floats(const File& file, const std::string& key, uint64_t limit) const;
  // Reads whole numbers of any type; one of u64 that does not fit is INT64_MAX.
  Result<std::vector<int64_t>> integers(const File& file, const std::string& key, uint64_t limit) const;

  // A line on standard error about a key that is not as expected and can be read all the same.
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
