// RAPL: Intel's and AMD's processors count their energy, and some of them that of their DRAM; Linux exports
// the counters as files. They count all programs on the machine.
#pragma once

#include <string>
#include <string_view>

#include "core/watch/energy/energy_meter.h"

namespace tierd {

inline constexpr const char* kPowercap = "/sys/class/powercap";

// Returns the sum over all domains of a kind, "package" or "dram", below `powercap`. A wrap of a counter is
// detected if joules() is called at least once per wrap, which takes minutes at full power. Errors:
// not_found, no such domain; io_error naming the file that cannot be read (since Linux 5.10 only root may
// read the counters); corrupt naming a file that holds no number.
FoundMeter rapl_meter(const std::string& powercap, std::string_view domain);

}  // namespace tierd
