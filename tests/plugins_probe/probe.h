// What the probe exports besides the plugin: the test's side of its calls.
#pragma once

#include <cstdint>
#include <functional>

#include "tierd/host.h"

namespace tierd {

struct Probe {
  // Inside `create`, with the host's table.
  std::function<void(const tierd_host&)> created;
  // What begin_sequence and end_sequence answer. Unset: all is well.
  std::function<int(uint64_t sequence)> begin_sequence;
  std::function<int(uint64_t sequence)> end_sequence;
  // The sequences of the rows of each call.
  std::function<void(uint32_t site, const tierd_rows_view& rows)> predict;
  std::function<void()> destroyed;
};

inline constexpr const char* kProbeSymbol = "tierd_probe";

}  // namespace tierd
