// Writes a safetensors file: first the declarations of all tensors, then their bytes in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/disk.h"
#include "core/base/result.h"
#include "core/formats/safetensors.h"
#include "core/model/layout/encoding.h"

namespace tierd {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // the file's name of it: "F32", "F16", "BF16"
  std::vector<uint64_t> shape;
};

// Only f32, f16 and bf16 have a dtype.
std::optional<std::string> dtype_of_encoding(Encoding encoding);

// Not thread-safe. Writes `<path>.partial`, which remains if finish() is not reached.
class SafetensorsWriter {
 public:
  // Writes the header and reserves the space. Errors: invalid_argument (a dtype without a known size, a name
  // that occurs twice or is not UTF-8, a shape larger than any file), no_space, io_error.
  static Result<SafetensorsWriter> create(const std::string& path,
                                          const std::vector<SafetensorsEntry>& entries,
                                          const SafetensorsMetadata& metadata = {});

  // Writes the next bytes of the entries in their order; a call may end inside an entry. The total must not
  // exceed the declared bytes.
  Status append(std::span<const std::byte> bytes);

  // Writes bytes of one entry, from `offset` in it on. No byte may be written twice.
  Status write(size_t entry, uint64_t offset, std::span<const std::byte> bytes);

  // Syncs the file and renames it to `path`. Call it after the last declared byte.
  Status finish();

 private:
  SafetensorsWriter(std::string path, OpenFile file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  OpenFile file_;
  Disk disk_;
  std::vector<uint64_t> offsets_;  // beginning of each entry, and the end
  uint64_t at_ = 0;
  uint64_t written_ = 0;
};

}  // namespace tierd
