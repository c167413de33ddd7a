// For whom neurons are fetched into a memory.
#pragma once

#include <cstdint>

#include "core/kernel/memory.h"
#include "core/kernel/site.h"

namespace tierd {

// The neurons are for a pass that computes from the memory itself, or for another memory, which lies over
// this one and fetches from it what it is missing.
struct Purpose {
  SiteId site = kNoSiteId;
  uint32_t step = 0;
  MemoryId client = 0;  // the memory itself, or the other one
  bool operator==(const Purpose&) const = default;
};

}  // namespace tierd
