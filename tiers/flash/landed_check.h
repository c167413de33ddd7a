// Bytes that have landed where the host does not look, as in the memory of a device, are checked by this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/agent/extent_table.h"

namespace tierd {

class LandedCheck {
 public:
  enum class Found : uint8_t { unchecked, right, wrong };
  virtual ~LandedCheck() = default;
  // An extent has landed at an address that is not for the host. May take as long as copying it back does.
  // [whoever drives the agent]
  virtual Found check(uint32_t number, const ExtentRef& extent, const std::byte* at) = 0;
};

}  // namespace tierd
