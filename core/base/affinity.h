// Binds threads to cores.
#pragma once

#include <cstdint>

#include "core/base/result.h"

namespace tierd {

// Cores that this process may use.
uint32_t available_cores();

// Binds the calling thread to the core-th of them (counted in hwloc's logical order, modulo their number).
// Error: unsupported, where the system refuses; the thread then runs where it did.
Status bind_this_thread(uint32_t core);

}  // namespace tierd
