// For whom neurons are fetched into a memory.
#pragma once

#include <cstdint>

#include "core/kernel/memory.h"
#include "core/kernel/site.h"

namespace tierd {

// A pass computes from the memory itself; or the neurons are on their way to another memory, which is brought
// what it is missing by way of this one.
struct Purpose {
  SiteId site = kNoSiteId;
  uint32_t step = 0;
  MemoryId client = 0;  // the memory itself, or the one that they go to from here
  bool operator==(const Purpose&) const = default;
};

}  // namespace tierd
