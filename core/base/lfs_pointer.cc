#include "core/base/lfs_pointer.h"

namespace tierd {

Status refuse_lfs_pointer(std::string_view beginning, const std::string& path) {
  if (!beginning.starts_with(kLfsPointerBeginning)) return {};
  return Error{Code::not_found, path,
               "is a Git LFS pointer, not the file that it stands for; run `git lfs pull` in its folder"};
}

}  // namespace tierd
