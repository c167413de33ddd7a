// Options of stores that tests write without progress lines.
#pragma once

#include "core/store/writer.h"

namespace tierd {

inline const WriteOptions kQuiet = {.neuron_bytes = 0, .quiet = true};

}  // namespace tierd
