// Reads through a few threads that call pread, for kernels and sandboxes without io_uring.
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "tiers/flash/device_kinds.h"
#include "tiers/flash/reading_threads.h"

namespace tierd {
namespace {

constexpr uint32_t kMostThreads = 8;

}  // namespace

Result<std::unique_ptr<BlockDevice>> make_pread_device(Descriptor& file, const std::string& path,
                                                       uint32_t depth) {
  const auto shared = std::make_shared<Descriptor>(std::move(file));
  const auto read = [shared](const DeviceRead& asked) {
    // The kernel transfers less than 2 GiB per call and returns a short read, so that an int holds the count.
    const ssize_t bytes =
        ::pread(shared->get(), asked.into.data(), asked.into.size(), static_cast<off_t>(asked.offset));
    return bytes < 0 ? -errno : static_cast<int32_t>(bytes);
  };
  return make_reading_threads("pread", path, depth, kMostThreads, read);
}

}  // namespace tierd
