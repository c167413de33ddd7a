// Changes the capacity of a tier while a run goes on. Every such change goes through move_capacity.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/run/runtime.h"

namespace tierd {

struct CapacityMove {
  size_t tier = 0;       // index in TierTable::memories
  std::string capacity;  // as tiers.NAME.capacity has it
  bool fit = false;      // raise a capacity that is too small
  std::string why = {};  // reason that the log line ends with; empty: none
};
// [main thread, between two steps] Sets the capacity, and prints a line on standard error unless `quiet`.
// Errors: those of Runtime::set_capacity.
Status move_capacity(Runtime& runtime, const CapacityMove& move, bool quiet);

}  // namespace tierd
