// A file that Git LFS has left in a clone in place of a large one: a few lines of text that name what is to
// be downloaded. Every reader of model files would find it broken; it is not.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tierd {

inline constexpr std::string_view kLfsPointerBeginning = "version https://git-lfs";

// Error: not_found, with the remedy, where `beginning` (the first bytes of the file `path`) is a pointer's.
Status refuse_lfs_pointer(std::string_view beginning, const std::string& path);

}  // namespace tierd
