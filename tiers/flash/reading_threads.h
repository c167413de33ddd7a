// A device whose reads are blocking calls, made by a few threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/block_device.h"
#include "core/base/result.h"

namespace tierd {

// The blocking call. Returns bytes, or -errno, as in DeviceDone. [any of the threads]
using ReadCall = std::function<int32_t(const DeviceRead& read)>;

// `name` and `depth` are the BlockDevice's; at most `depth` of the `threads` are started. Each thread calls
// `begin` first, which may be empty. The destructor waits for reads that have started. Error: io_error,
// naming `path`, if no descriptor or thread is available.
Result<std::unique_ptr<BlockDevice>> make_reading_threads(std::string name, const std::string& path,
                                                          uint32_t depth, uint32_t threads, ReadCall read,
                                                          std::function<void()> begin = {});

}  // namespace tierd
