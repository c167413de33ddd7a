// Devices that measure what they draw.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/base/result.h"

namespace tierd {

// One device, or all of a kind. Asking takes some microseconds to a millisecond. One thread.
class EnergyMeter {
 public:
  virtual ~EnergyMeter() = default;
  virtual const char* name() const = 0;  // "RAPL"
  // Returns the joules since some time of its own. They only rise. Nothing: it cannot tell any more.
  virtual std::optional<double> joules() = 0;
};

// A meter, or why there is none.
using FoundMeter = Result<std::unique_ptr<EnergyMeter>>;

struct EnergyMeters {
  FoundMeter processor;
  FoundMeter gpu;
  FoundMeter dram;
};

// The same reason for all of them.
EnergyMeters no_meters(const Error& why);

}  // namespace tierd
