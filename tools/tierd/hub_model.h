// Finds or downloads the models that -hf and -hfd name.
#pragma once

#include <optional>

#include "tools/tierd/arguments.h"

namespace tierd {

// Finds the models in the cache or downloads them, and stores their paths in `arguments`. Does nothing where
// neither flag is given. With --check it downloads nothing and prints the files that a run would download.
// Returns an exit code after an error or that print. [main thread, before others start]
std::optional<int> take_hub_model(Arguments& arguments);

}  // namespace tierd
