#include "core/base/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tierd {

OpenFile::OpenFile(OpenFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status OpenFile::read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return disk_error(path_, fmt::format("reading at {}", offset));
    if (got == 0)
      return Error{
          Code::corrupt, path_,
          fmt::format("the file ends at byte {}, {} bytes before the end of the read", offset, out.size())};
    offset += static_cast<uint64_t>(got);
    out = out.subspan(static_cast<size_t>(got));
  }
  return {};
}

Result<uint64_t> OpenFile::size() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) return disk_error(path_, "reading its size");
  return static_cast<uint64_t>(status.st_size);
}

bool has_no_locks(int error) {
  return error == EOPNOTSUPP || error == ENOSYS || error == ENOLCK;
}

Error disk_error(const std::string& path, std::string_view doing) {
  const int number = errno;
  Code code = Code::io_error;
  if (number == ENOSPC || number == EDQUOT || number == EFBIG) code = Code::no_space;
  if (number == ENOENT) code = Code::not_found;
  return {code, path, fmt::format("{}: {}", doing, std::strerror(number))};
}

Result<OpenFile> Disk::open(const std::string& path, bool truncate) {
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (truncate ? O_TRUNC : 0);
  const int descriptor = ::open(path.c_str(), flags, 0644);
  if (descriptor < 0) return disk_error(path, "opening to write");
  return OpenFile(descriptor, path);
}

Status Disk::reserve(const OpenFile& file, uint64_t bytes) {
  if (bytes == 0 || fallocate(file.descriptor(), 0, 0, static_cast<off_t>(bytes)) == 0) return {};
  if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR) return {};  // a full disk shows in the writes
  return disk_error(file.path(), fmt::format("reserving {} bytes", bytes));
}

Status Disk::write(const OpenFile& file, uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(file.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return disk_error(file.path(), fmt::format("writing at {}", offset));
    // Starts writeback of the bytes, so that the next sync finds little left to do.
    sync_file_range(file.descriptor(), static_cast<off_t>(offset), put, SYNC_FILE_RANGE_WRITE);
    offset += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

Status Disk::truncate(const OpenFile& file, uint64_t bytes) {
  if (ftruncate(file.descriptor(), static_cast<off_t>(bytes)) == 0) return {};
  return disk_error(file.path(), fmt::format("setting its size to {}", bytes));
}

Status Disk::sync(const OpenFile& file) {
  if (fsync(file.descriptor()) == 0) return {};
  return disk_error(file.path(), "syncing to disk");
}

Status Disk::make_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return {};
  return disk_error(path, "making the folder");
}

Status Disk::rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return {};
  return disk_error(to, fmt::format("renaming {} to it", from));
}

Status Disk::remove(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return disk_error(path, "removing it");
}

Result<OpenFile> open_directory(const std::string& path, bool follow) {
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
  const int descriptor = open(path.c_str(), flags);
  if (descriptor < 0) return disk_error(path, "opening the folder");
  return OpenFile(descriptor, path);
}

std::string parent_directory(const std::string& path) {
  std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string nearest_existing(const std::string& path) {
  std::error_code unknown;
  std::filesystem::path there = std::filesystem::absolute(path, unknown);
  while (!std::filesystem::exists(there, unknown) && there.has_relative_path()) there = there.parent_path();
  return there.string();
}

}  // namespace tierd
