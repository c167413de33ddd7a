#include "tools/tier/calibrate/scratch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/base/align.h"
#include "core/base/progress.h"
#include "core/base/random.h"
#include "core/base/units.h"

namespace tierd {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

struct FreeChunk {
  void operator()(std::byte* memory) const { std::free(memory); }
};

Error failed(const std::string& folder, std::string_view what, int error) {
  return {error == ENOSPC || error == EDQUOT ? Code::no_space : Code::io_error, folder,
          fmt::format("{}: {}", what, std::generic_category().message(error))};
}

// A file system without direct I/O refuses it at open() or at the first write.
bool write_at(int fd, const std::byte* bytes, uint64_t n, uint64_t offset) {
  while (n != 0) {
    const ssize_t written = ::pwrite(fd, bytes, n, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EINVAL && (::fcntl(fd, F_GETFL) & O_DIRECT) != 0) {
      if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_DIRECT) == 0) continue;
    }
    if (written <= 0) return false;
    bytes += written;
    n -= static_cast<uint64_t>(written);
    offset += static_cast<uint64_t>(written);
  }
  return true;
}

}  // namespace

Result<ScratchFile> make_scratch_file(const std::string& folder, uint64_t bytes, bool quiet) {
  bytes = align_up(bytes, kChunkBytes);
  std::string name = folder + "/.tier-calibrate-XXXXXX";
  ScratchFile scratch{Descriptor(::mkostemp(name.data(), O_CLOEXEC | O_DIRECT))};
  if (!scratch.file.open() && errno == EINVAL) {
    name = folder + "/.tier-calibrate-XXXXXX";
    scratch.file = Descriptor(::mkostemp(name.data(), O_CLOEXEC));
  }
  if (!scratch.file.open()) return failed(folder, "cannot create a file to measure on", errno);
  ::unlink(name.c_str());
  const int fd = scratch.file.get();
  if (const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes)); error != 0) {
    return failed(
        folder, fmt::format("no room for {} to measure on", format_bytes(static_cast<double>(bytes))), error);
  }

  const std::unique_ptr<std::byte[], FreeChunk> chunk(
      static_cast<std::byte*>(std::aligned_alloc(kDirectIoAlignment, kChunkBytes)));
  if (chunk == nullptr) return Error{Code::no_space, folder, "no memory for a write buffer"};
  Random random(1);
  for (uint64_t at = 0; at < kChunkBytes; at += sizeof(uint64_t)) {
    const uint64_t word = random.next();
    std::memcpy(chunk.get() + at, &word, sizeof word);
  }
  Progress progress("writing the file to measure on", bytes, quiet);
  for (uint64_t offset = 0; offset < bytes; offset += kChunkBytes) {
    // All blocks differ, so that a disk that deduplicates gains nothing.
    for (uint64_t at = 0; at < kChunkBytes; at += kDirectIoAlignment) {
      const uint64_t mark = offset + at;
      std::memcpy(chunk.get() + at, &mark, sizeof mark);
    }
    if (!write_at(fd, chunk.get(), kChunkBytes, offset)) return failed(folder, "write", errno);
    progress.advance(kChunkBytes);
  }
  if (::fdatasync(fd) != 0) return failed(folder, "fdatasync", errno);
  progress.finish();
  return scratch;
}

}  // namespace tierd
