// The file of a machine's description, merged with its bases: `base = "NAME"` names the description that it
// starts from, which may have a base as well. Tables are merged key by key; any other value, a list as a
// whole, of the file wins over the base's.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/named_toml.h"
#include "core/base/result.h"

namespace tierd {

// Returns the folder of descriptions: configs/hardware, or $TIERD_CONFIGS/hardware.
std::filesystem::path machines_folder();

// `name`: of a file in configs/hardware, or a file's path; the same for a base. The returned table has no
// `base`. Errors: those of read_named_toml; invalid_argument naming the file, if a base is not a name, cannot
// be read, or is a file that starts from it.
Result<NamedToml> read_machine_file(const std::string& name);

}  // namespace tierd
