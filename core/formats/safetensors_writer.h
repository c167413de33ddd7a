// Writes a safetensors file: all tensors are declared first, then their bytes follow, one after another or
// wherever they belong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/disk.h"
#include "core/base/result.h"
#include "core/formats/safetensors.h"

namespace tierd {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // as the file will have it: "F32", "F16", "BF16"
  std::vector<uint64_t> shape;
};

// Not thread-safe. Writes `<path>.partial`, which stays behind where finish() was not reached.
class SafetensorsWriter {
 public:
  // Writes the header and reserves the space. Errors: invalid_argument (a dtype without a known size, a name
  // that occurs twice or is not UTF-8, a shape larger than any file), no_space, io_error.
  static Result<SafetensorsWriter> create(const std::string& path,
                                          const std::vector<SafetensorsEntry>& entries,
                                          const SafetensorsMetadata& metadata = {});

  // The next bytes of the entries in their order; a call may end inside of one. No more than were declared.
  Status append(std::span<const std::byte> bytes);

  // Bytes of one entry, from `offset` in it on; none are written twice.
  Status write(size_t entry, uint64_t offset, std::span<const std::byte> bytes);

  // After the last byte that was declared: syncs the file, then renames it to `path`.
  Status finish();

 private:
  SafetensorsWriter(std::string path, OpenFile file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  OpenFile file_;
  Disk disk_;
  std::vector<uint64_t> offsets_;  // where each entry begins, and the end
  uint64_t at_ = 0;
  uint64_t written_ = 0;
};

}  // namespace tierd
