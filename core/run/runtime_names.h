// These numbers and names are shared by runtime.cc, which makes a Runtime, and running_runtime.cc, which has
// what a running one does.
#pragma once

#include <cstdint>

#include "core/message/message.h"

namespace tierd {

inline constexpr MemoryId kDramMemory = 1;                     // the first DRAM agent's
inline constexpr const char* kPluginTables = "plugin tables";  // a name in the budget, as is the next
inline constexpr const char* kResident = "resident weights";
inline constexpr const char* kCapacity = "tiers.dram.capacity";

}  // namespace tierd
