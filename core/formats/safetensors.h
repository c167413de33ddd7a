// The header of a safetensors file: 8 bytes of length, a JSON object of tensors, then their bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "core/base/result.h"
#include "core/model/layout/encoding.h"

namespace tierd {

struct SafetensorsTensor {
  std::string name;
  std::string dtype;  // the file's name of it: "F32", "BF16", "I32"
  std::vector<uint64_t> shape;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
};

// Returns all tensors by rising offset, checked as the format demands: each has as many bytes as shape and
// dtype imply, and they follow one another without hole or overlap up to the end of the file. Errors:
// corrupt; unsupported for a dtype of unknown size.
Result<std::vector<SafetensorsTensor>> read_safetensors_header(const File& file);

// The text metadata of a file, by name; empty if it has none. Errors: those of the header.
using SafetensorsMetadata = std::map<std::string, std::string>;
Result<SafetensorsMetadata> read_safetensors_metadata(const File& file);

// The metadata key of a file with tensors for a plugin: the model it was made for (shape_text).
inline constexpr const char* kMadeFor = "tierd.made_for";

// Returns the bytes of one value, for any dtype of the format whose values fill whole bytes.
std::optional<uint32_t> bytes_of_dtype(std::string_view dtype);

// Only F32, F16 and BF16 have an encoding.
std::optional<Encoding> encoding_of_dtype(std::string_view dtype);

}  // namespace tierd
