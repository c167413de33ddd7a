// What -hf names becomes the model of the run.
#pragma once

#include <optional>

#include "tools/tierd/arguments.h"

namespace tierd {

// Finds the model in the cache or downloads it, and puts its path into `arguments`; does nothing where -hf is
// not given. With --check nothing is downloaded: what would be is printed instead. An exit code where the
// program ends here, after a line or that print. [main thread, before others]
std::optional<int> take_hub_model(Arguments& arguments);

}  // namespace tierd
