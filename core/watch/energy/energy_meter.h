// Devices that measure their own energy.
#pragma once

#include <memory>
#include <optional>

#include "core/base/result.h"

namespace tierd {

// One device, or all of a kind. A reading takes microseconds to a millisecond. One thread.
class EnergyMeter {
 public:
  virtual ~EnergyMeter() = default;
  virtual const char* name() const = 0;  // "RAPL"
  // Returns the joules since an arbitrary start; they only increase. Nothing if the meter has failed.
  virtual std::optional<double> joules() = 0;
};

// A meter, or the reason why there is none.
using FoundMeter = Result<std::unique_ptr<EnergyMeter>>;

struct EnergyMeters {
  FoundMeter processor;
  FoundMeter gpu;
  FoundMeter dram;
};

// Returns three times the same reason.
EnergyMeters no_meters(const Error& why);

}  // namespace tierd
