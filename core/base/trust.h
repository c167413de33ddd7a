// Whether a file or a folder can only have been written by whom this process trusts: its own user and root.
#pragma once

#include <string>

#include "core/base/result.h"

namespace tierd {

// A file whose code is run: neither it nor its folder may be written to by everybody, nor by a group that is
// not this process's own. A folder with the sticky bit (/tmp) is one in which nobody replaces what others
// own. Error: invalid_argument, naming what can be written to, and what mends it.
Status check_code(const std::string& path);

// The folder where stores are made and taken for what they say they are: the same of it, and that it belongs
// to this process's user or to root. Root trusts whoever owns it. Error: as above.
Status check_folder(const std::string& path);

}  // namespace tierd
