// cuFile (GPUDirect Storage): a disk that writes into the device's memory, past the host's.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/base/block_device.h"
#include "core/base/result.h"
#include "tiers/gpu/cuda/cufile_api.h"

namespace tierd::cuda {

inline constexpr const char* kCuFileLibrary = "libcufile.so.0";

// The functions of the library.
struct CuFile {
  cufile::HandleRegister* register_handle = nullptr;
  cufile::HandleDeregister* deregister_handle = nullptr;
  cufile::Read* read = nullptr;

  // Loads the library and opens its driver, once; both stay. Errors, which name the library: not_found, if it
  // cannot be loaded or lacks a function; io_error, if its driver does not open, or would use its
  // compatibility mode, in which the host reads and copies: staged reads do that too, and verify.
  static Result<const CuFile*> load(const std::string& library);
};

// Returns a block device that reads `path` with O_DIRECT into memory of the device `ordinal`, by threads that
// wait for each read. Calls `map` for the destination of each read before it starts, to back it with memory;
// [thread that drives] false: there is no room. Errors: io_error, if the file or cuFile refuses.
Result<std::unique_ptr<BlockDevice>> open_with_cufile(const CuFile& library, const std::string& path,
                                                      int ordinal,
                                                      std::function<bool(std::span<std::byte>)> map);

}  // namespace tierd::cuda
