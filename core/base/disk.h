// The file operations of writing a store or a GGUF file, each a virtual call, so that tests can fail it, end
// the process or lose power there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/result.h"

namespace tierd {

// An open file or directory. Closed on destruction, which also gives up its lock.
class OpenFile {
 public:
  OpenFile() = default;
  OpenFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&& other) noexcept;
  ~OpenFile();

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  // Errors: io_error; corrupt if the file ends before `out` is filled.
  Status read(uint64_t offset, std::span<std::byte> out) const;
  Result<uint64_t> size() const;

 private:
  int descriptor_ = -1;
  std::string path_;
};

// The error of the last failed system call: no_space for a full disk or quota, not_found, otherwise io_error.
Error disk_error(const std::string& path, std::string_view doing);

// Returns whether flock failed with `error` because a network file system or a sandbox has no locks.
bool has_no_locks(int error);

// The file system of the operating system; any thread. Every error names the path.
class Disk {
 public:
  virtual ~Disk() = default;

  // Opens for reading and writing; created when absent, emptied when `truncate`. Refuses a symbolic link in
  // the place of the file, because an attacker who can guess the name may have put it there.
  virtual Result<OpenFile> open(const std::string& path, bool truncate);
  // Reserves space for a file of `bytes`, so that a full disk is found before the work, not after.
  virtual Status reserve(const OpenFile& file, uint64_t bytes);
  virtual Status write(const OpenFile& file, uint64_t offset, std::span<const std::byte> bytes);
  virtual Status truncate(const OpenFile& file, uint64_t bytes);
  // When it returns, all bytes written survive a power cut. Also for directories (their entries).
  virtual Status sync(const OpenFile& file);
  virtual Status make_directory(const std::string& path);  // succeeds if it exists
  virtual Status rename(const std::string& from, const std::string& to);
  virtual Status remove(const std::string& path);  // succeeds if it does not exist
};

// Opens a directory to sync or lock it. `follow`: the path may be a symbolic link.
Result<OpenFile> open_directory(const std::string& path, bool follow = true);
std::string parent_directory(const std::string& path);
// Returns the path itself if it exists, else the nearest existing folder above it, in which it would be made.
std::string nearest_existing(const std::string& path);

}  // namespace tierd
