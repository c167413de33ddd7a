// The block size of the devices in tests of flash.
#pragma once

#include <cstdint>

namespace tierd {

inline constexpr uint64_t kBlock = 4096;

}  // namespace tierd
