// What writing a store or a GGUF file does to the file system, one virtual call each, so that tests can fail,
// die or lose power at any of them.
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
  // Errors: io_error, corrupt when the file ends before.
  Status read(uint64_t offset, std::span<std::byte> out) const;
  Result<uint64_t> size() const;

 private:
  int descriptor_ = -1;
  std::string path_;
};

// The error of the last failed system call: no_space for a full disk or quota, not_found, otherwise io_error.
Error disk_error(const std::string& path, std::string_view doing);

// Tells whether flock failed with `error` because the file system, or a sandbox, has no locks (some network
// file systems).
bool has_no_locks(int error);

// The real one; any thread. Every error names the path.
class Disk {
 public:
  virtual ~Disk() = default;

  // Opens for reading and writing; created when absent, emptied when `truncate`. A link in the place of the
  // file is an error: whoever can guess the name may have laid it there.
  virtual Result<OpenFile> open(const std::string& path, bool truncate);
  // Reserves the space of a file that will have `bytes`, so that a full disk is found before the work, not
  // after.
  virtual Status reserve(const OpenFile& file, uint64_t bytes);
  virtual Status write(const OpenFile& file, uint64_t offset, std::span<const std::byte> bytes);
  virtual Status truncate(const OpenFile& file, uint64_t bytes);
  // Once it returns, what was written survives a power cut. Also for directories (their entries).
  virtual Status sync(const OpenFile& file);
  virtual Status make_directory(const std::string& path);  // fine if it is there
  virtual Status rename(const std::string& from, const std::string& to);
  virtual Status remove(const std::string& path);  // fine if it is not there
};

// Opens a directory to sync or lock it. `follow`: it may be a link.
Result<OpenFile> open_directory(const std::string& path, bool follow = true);
std::string parent_directory(const std::string& path);
// The path itself if it is there, else the nearest folder above it that is: where it would be made.
std::string nearest_existing(const std::string& path);

}  // namespace tierd
