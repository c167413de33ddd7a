// A file of incompressible bytes for measuring reads. It is nameless from the start, so that it vanishes
// however the program ends.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/descriptor.h"
#include "core/base/result.h"

namespace tierd {

struct ScratchFile {
  Descriptor file;
  // Opens the file again while `file` is open.
  std::string path() const { return "/proc/self/fd/" + std::to_string(file.get()); }
};

// Writes `bytes` in `folder`, past the page cache if the file system supports it, and waits for the disk.
// Errors: no_space, io_error, naming the folder.
Result<ScratchFile> make_scratch_file(const std::string& folder, uint64_t bytes, bool quiet);

}  // namespace tierd
