// A device whose reads are calls that wait, each in one of a few threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/block_device.h"
#include "core/base/result.h"

namespace tierd {

// What the threads call. Returns bytes, or -errno, as DeviceDone has it. [any of the threads]
using ReadCall = std::function<int32_t(const DeviceRead& read)>;

// `name` and `depth` as BlockDevice has them, `threads` at most as many. `begin` is called by each thread
// first; it may be empty. Reads that were begun are awaited when the device goes. Error: io_error, naming
// `path`, where there is no descriptor or thread to be had.
Result<std::unique_ptr<BlockDevice>> make_reading_threads(std::string name, const std::string& path,
                                                          uint32_t depth, uint32_t threads, ReadCall read,
                                                          std::function<void()> begin = {});

}  // namespace tierd
