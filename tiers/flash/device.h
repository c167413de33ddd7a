// The devices that the flash agent reads through: io_uring with O_DIRECT, and a pool of threads that call
// pread if io_uring is forbidden.
#pragma once

#include <memory>
#include <string>

#include "core/base/block_device.h"
#include "core/base/result.h"

namespace tierd {

// Opens `path` for reading. Errors: not_found, io_error, naming the file.
Result<std::unique_ptr<BlockDevice>> open_device(const std::string& path, const DeviceOptions& options);

}  // namespace tierd
