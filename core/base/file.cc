#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/base/lfs_pointer.h"

namespace tierd {
namespace {

Error system_error(std::string origin, std::string_view what, int number) {
  const Code code = number == ENOENT || number == ENOTDIR ? Code::not_found : Code::io_error;
  return {code, std::move(origin), fmt::format("{}: {}", what, std::generic_category().message(number))};
}

// Refuses a Git LFS pointer. Every file of a model is opened through File::open, so no reader checks again.
Status refuse_pointer_file(int descriptor, const std::string& path) {
  char beginning[kLfsPointerBeginning.size()];
  const ssize_t got = ::pread(descriptor, beginning, sizeof beginning, 0);
  // A file that cannot be read gives its error at the first read.
  if (got < 0) return {};
  return refuse_lfs_pointer(std::string_view(beginning, static_cast<size_t>(got)), path);
}

}  // namespace

Result<File> File::open(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer; it has no effect on regular files.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return system_error(path, "cannot open", errno);
  File file(path, descriptor);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return system_error(path, "cannot stat", errno);
  if (!S_ISREG(status.st_mode)) {
    return Error{Code::invalid_argument, path,
                 S_ISDIR(status.st_mode) ? "is a folder, expected a file" : "is not a regular file"};
  }
  TIERD_TRY(refuse_pointer_file(descriptor, path));
  file.size_bytes_ = static_cast<uint64_t>(status.st_size);
  file.modified_ns_ = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  return file;
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_bytes_(other.size_bytes_),
      modified_ns_(other.modified_ns_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(modified_ns_, other.modified_ns_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status File::read_exact(uint64_t offset, std::span<std::byte> out) const {
  if (offset > INT64_MAX || out.size() > INT64_MAX - offset) {
    return Error{Code::corrupt, path_, fmt::format("offset {} lies outside any file", offset)};
  }
  for (size_t done = 0; done < out.size();) {
    const ssize_t got =
        ::pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(at(offset + done), "cannot read", errno);
    if (got == 0) {
      return Error{Code::corrupt, at(offset),
                   fmt::format("{} bytes expected, the file ends after {}", out.size(), done)};
    }
    done += static_cast<size_t>(got);
  }
  return {};
}

void File::forget() const {
  (void)::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
}

std::string File::at(uint64_t offset) const {
  return fmt::format("{}: offset {}", path_, offset);
}

Result<std::string> read_whole_file(const std::string& path, uint64_t limit_bytes) {
  TIERD_ASSIGN(const File file, File::open(path));
  if (file.size_bytes() > limit_bytes) {
    return Error{Code::corrupt, path,
                 fmt::format("{} bytes, expected at most {}", file.size_bytes(), limit_bytes)};
  }
  std::string text(file.size_bytes(), '\0');
  TIERD_TRY(file.read_exact(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<std::string> read_file_or_pipe(const std::string& path, uint64_t limit_bytes) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))
    return read_whole_file(path, limit_bytes);
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 16> part;
  while (text.size() <= limit_bytes && (in.read(part.data(), part.size()), in.gcount() > 0))
    text.append(part.data(), static_cast<size_t>(in.gcount()));
  if (!in.is_open() || in.bad()) return Error{Code::io_error, path, "cannot be read"};
  if (text.size() > limit_bytes)
    return Error{Code::corrupt, path, fmt::format("expected at most {} bytes, found more", limit_bytes)};
  return text;
}

bool is_regular_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool file_exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

}  // namespace tierd
