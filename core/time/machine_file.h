// The file that describes a machine, with what it takes over from others: `base = "NAME"` in it names the
// description that it starts from, which may have a base as well. Tables of both are one, key by key; every
// other value, a list as a whole, is that of the file that names the base.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/named_toml.h"
#include "core/base/result.h"

namespace tierd {

// Where descriptions lie: configs/hardware, or $TIERD_CONFIGS/hardware.
std::filesystem::path machines_folder();

// `name`: of a file in configs/hardware, or a file's path; so is a base. The table has no `base` any more.
// Errors: those of read_named_toml; invalid_argument naming the file, where a base is none, cannot be read,
// or comes back to a file that starts from it.
Result<NamedToml> read_machine_file(const std::string& name);

}  // namespace tierd
