// Checks that only trusted users, this process's own and root, can have written a file or a folder.
#pragma once

#include <string>

#include "core/base/result.h"

namespace tierd {

// Checks a file whose code is to be run: neither it nor its folder may be world-writable, or writable by a
// group other than this process's own. A folder with the sticky bit (/tmp) is accepted, because users cannot
// replace each other's files in it. Error: invalid_argument, naming the writable path and the remedy.
Status check_code(const std::string& path);

// Checks the folder of stores, whose content is trusted without further checks: the same conditions, and it
// must belong to this process's user or to root. Root accepts any owner. Error: as above.
Status check_folder(const std::string& path);

}  // namespace tierd
