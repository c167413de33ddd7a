// Checks bytes that have landed where the host cannot read, as in the memory of a device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/agent/extent_table.h"

namespace tierd {

class LandedCheck {
 public:
  enum class Found : uint8_t { unchecked, right, wrong };
  virtual ~LandedCheck() = default;
  // Checks an extent that has landed at an address that the host cannot dereference. May take as long as
  // copying it back. [the thread that drives the agent]
  virtual Found check(uint32_t number, const ExtentRef& extent, const std::byte* at) = 0;
};

}  // namespace tierd
