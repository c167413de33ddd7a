// RAPL: Intel's and AMD's processors count what they draw, and some of them what the DRAM at them draws;
// Linux shows the counters as files. They tell of all that runs on the machine.
#pragma once

#include <string>
#include <string_view>

#include "core/watch/energy/energy_meter.h"

namespace tierd {

inline constexpr const char* kPowercap = "/sys/class/powercap";

// The sum over all domains of a kind, "package" or "dram", below `powercap`. A counter that has begun anew is
// noticed where joules() is asked at least once a round, which takes minutes at full power. Errors:
// not_found, no such domain; io_error naming the file that cannot be read (since Linux 5.10 root alone reads
// the counters); corrupt naming a file that holds no number.
FoundMeter rapl_meter(const std::string& powercap, std::string_view domain);

}  // namespace tierd
