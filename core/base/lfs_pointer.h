// A Git LFS pointer: a few lines of text that a clone has in place of a large file, naming the file to
// download. Readers of model files would report it as corrupt.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tierd {

inline constexpr std::string_view kLfsPointerBeginning = "version https://git-lfs";

// Refuses a pointer: `beginning` holds the first bytes of the file `path`. Error: not_found, with the remedy.
Status refuse_lfs_pointer(std::string_view beginning, const std::string& path);

}  // namespace tierd
