// Hooks that the probe exports besides the plugin, set by the test.
#pragma once

#include <cstdint>
#include <functional>

#include "tierd/host.h"

namespace tierd {

struct Probe {
  // Called inside `create` with the host's table.
  std::function<void(const tierd_host&)> created;
  // Return the answers of begin_sequence and end_sequence. Default: success.
  std::function<int(uint64_t sequence)> begin_sequence;
  std::function<int(uint64_t sequence)> end_sequence;
  // Receives the sequences of each call's rows.
  std::function<void(uint32_t site, const tierd_rows_view& rows)> predict;
  std::function<void()> destroyed;
};

inline constexpr const char* kProbeSymbol = "tierd_probe";

}  // namespace tierd
