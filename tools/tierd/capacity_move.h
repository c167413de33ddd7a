// The one way in which a tier gets another capacity while a run goes on.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/run/runtime.h"

namespace tierd {

struct CapacityMove {
  size_t tier = 0;       // among TierTable::memories
  std::string capacity;  // as tiers.NAME.capacity has it
  bool fit = false;      // raise one that is too small
  std::string why = {};  // stands behind the line; empty: nothing does
};
// [main thread, between two steps] Sets it, and tells of it on standard error unless `quiet`. Errors: those
// of Runtime::set_capacity.
Status move_capacity(Runtime& runtime, const CapacityMove& move, bool quiet);

}  // namespace tierd
