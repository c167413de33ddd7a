// A folder with a model in GGUF, as downloaded.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"

namespace tierd {

// Returns the GGUF file of a folder to open: the only one, or the first shard of the only set; nothing if the
// folder has none. Errors: invalid_argument, with a list, if there are several models; io_error.
Result<std::optional<std::string>> gguf_of_folder(const std::string& folder);

}  // namespace tierd
