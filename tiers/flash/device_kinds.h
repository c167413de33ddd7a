// The implementations behind open_device (tiers/flash/device.h), each given an open file that it then owns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/block_device.h"
#include "core/base/descriptor.h"
#include "core/base/result.h"

namespace tierd {

// Error: unsupported, if the kernel or a sandbox refuses io_uring. `file` is left unchanged then.
Result<std::unique_ptr<BlockDevice>> make_uring_device(Descriptor& file, const std::string& path,
                                                       uint32_t depth);

// A few threads that call pread. Error: io_error, if no descriptor or thread is available.
Result<std::unique_ptr<BlockDevice>> make_pread_device(Descriptor& file, const std::string& path,
                                                       uint32_t depth);

}  // namespace tierd
