// A folder with a model in GGUF, as a download leaves it.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"

namespace tierd {

// The GGUF file to open of a folder: the only one, or the first shard of the only set. Nothing where the
// folder has none. Errors: invalid_argument, with a list, where there are several models; io_error.
Result<std::optional<std::string>> gguf_of_folder(const std::string& folder);

}  // namespace tierd
