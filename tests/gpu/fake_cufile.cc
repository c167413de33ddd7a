// Replaces libcufile.so for an emulated device: reads by pread into host memory. Built several times, with
// one fault each.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "tiers/gpu/cuda/cufile_api.h"

#ifndef FAKE_OPEN
#define FAKE_OPEN 0  // the result of opening its driver
#endif
#ifndef FAKE_MODULE
#define FAKE_MODULE 2  // the version of nvidia-fs; 0: none
#endif
#ifndef FAKE_SHORT
#define FAKE_SHORT 0  // the most bytes that one read returns; 0: all
#endif
#ifndef FAKE_FAILS_EACH
#define FAKE_FAILS_EACH 0  // every n-th read fails; 0: none
#endif
#ifndef FAKE_BAD_PLACE
#define FAKE_BAD_PLACE (-1)  // a read of this byte of the file fails; -1: none
#endif
#ifndef FAKE_SPOILS_FIRST
#define FAKE_SPOILS_FIRST 0  // the number of first reads with a wrong byte
#endif

namespace {

using namespace tierd::cuda::cufile;

struct Registered {
  int descriptor = -1;
};
std::atomic<unsigned> reads = 0;

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE Error cuFileDriverOpen() {
  return {FAKE_OPEN, 0};
}
FAKE Error cuFileDriverGetProperties(DriverProperties* properties) {
  properties->major_version = FAKE_MODULE;
  return {};
}
FAKE Error cuFileHandleRegister(Handle* handle, Description* description) {
  if (description->kind != 1) return {5022, 0};
  *handle = new Registered{description->file.descriptor};
  return {};
}
FAKE void cuFileHandleDeregister(Handle handle) {
  delete static_cast<Registered*>(handle);
}
// Accepts any alignment, as cuFile does.
FAKE ssize_t cuFileRead(Handle handle, void* memory, std::size_t bytes, off_t offset, off_t memory_offset) {
  const unsigned number = ++reads;
  if (FAKE_FAILS_EACH != 0 && number % (FAKE_FAILS_EACH + !FAKE_FAILS_EACH) == 0) return -5030;
  constexpr off_t kBadPlace = FAKE_BAD_PLACE;
  if (offset <= kBadPlace && kBadPlace < offset + static_cast<off_t>(bytes)) return -5030;
  if (FAKE_SHORT != 0 && bytes > FAKE_SHORT) bytes = FAKE_SHORT;
  constexpr std::size_t kBlock = 4096;
  alignas(kBlock) thread_local char block[16 * kBlock];
  auto* to = static_cast<char*>(memory) + memory_offset;
  std::size_t done = 0;
  while (done < bytes) {
    const off_t at = offset + static_cast<off_t>(done);
    const off_t first = at / static_cast<off_t>(kBlock) * static_cast<off_t>(kBlock);
    const ssize_t read = ::pread(static_cast<Registered*>(handle)->descriptor, block, sizeof block, first);
    if (read < 0) return -1;
    const auto before = static_cast<std::size_t>(at - first);
    if (static_cast<std::size_t>(read) <= before) break;
    const std::size_t n = std::min(static_cast<std::size_t>(read) - before, bytes - done);
    std::memcpy(to + done, block + before, n);
    done += n;
  }
  if (number <= FAKE_SPOILS_FIRST && done != 0) to[done / 2] = static_cast<char>(~to[done / 2]);
  return static_cast<ssize_t>(done);
}
