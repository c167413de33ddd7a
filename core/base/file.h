// A file opened for reading at offsets. Readers use it instead of a mapping: a file that is truncated while
// it is read gives an error, not a signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/result.h"

namespace tierd {

inline constexpr uint64_t kStatBlockBytes = 512;  // the unit of st_blocks in struct stat

class File {
 public:
  // Errors: not_found (also of a Git LFS pointer), invalid_argument (not a regular file), io_error.
  static Result<File> open(const std::string& path);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  // Size and time of modification when the file was opened.
  uint64_t size_bytes() const { return size_bytes_; }
  int64_t modified_ns() const { return modified_ns_; }

  // Fills `out` from `offset`. Any thread. Errors: io_error; corrupt if the file ends before `out` is filled.
  Status read_exact(uint64_t offset, std::span<std::byte> out) const;

  // Drops the file from the system's page cache, which a cgroup counts as this program's memory. Call it when
  // the file is not read again.
  void forget() const;

  // Returns the origin of an error at a position of this file: "model.gguf: offset 24".
  std::string at(uint64_t offset) const;

 private:
  File(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;  // owned; -1 after a move
  uint64_t size_bytes_ = 0;
  int64_t modified_ns_ = 0;
};

// Returns the whole of a file of at most `limit_bytes`. Errors: those of File; corrupt if it is larger.
Result<std::string> read_whole_file(const std::string& path, uint64_t limit_bytes);

// The same for a file that may be a pipe, such as /dev/stdin.
inline constexpr uint64_t kMostInputBytes = uint64_t{1} << 30;
Result<std::string> read_file_or_pipe(const std::string& path, uint64_t limit_bytes = kMostInputBytes);

bool is_regular_file(const std::string& path);

// Returns false also if the file's existence cannot be determined.
bool file_exists(const std::string& path);

}  // namespace tierd
