// What -hf and -hfd name becomes the model of the run and its draft.
#pragma once

#include <optional>

#include "tools/tierd/arguments.h"

namespace tierd {

// Finds the models in the cache or downloads them, and puts their paths into `arguments`; does nothing where
// neither is given. With --check nothing is downloaded: what would be is printed instead. An exit code where
// the program ends here, after a line or that print. [main thread, before others]
std::optional<int> take_hub_model(Arguments& arguments);

}  // namespace tierd
