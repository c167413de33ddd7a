// The energy of a run in joules and grams of CO2, modelled or measured while it runs.
#pragma once

#include <optional>

#include "core/run/runtime.h"
#include "core/watch/energy/energy_ledger.h"

namespace tierd {

// The progress of a run, as counted by the program that runs it.
struct RunProgress {
  uint64_t decode_ns = 0;  // by the run's clock
  uint64_t decoded_tokens = 0;
  uint64_t generated_tokens = 0;  // decoded tokens and the first of each text
};

// One thread, the runtime's.
class RunEnergy {
 public:
  // Begins to count. Parts with a meter are measured, unless time is virtual. The runtime outlives this.
  explicit RunEnergy(Runtime& runtime);
  RunEnergy(Runtime& runtime, EnergyMeters meters);

  // Counts all time so far as loading.
  void loaded();
  // To be called between two steps; reads meters at most once a second.
  void look(const RunProgress& progress);
  // To be called where a part of the run begins or ends; always reads meters.
  void look_now(const RunProgress& progress);
  // Returns the totals as of the last look. None: the power of the machine is not known (RunPlan::power). In
  // wall time a GPU that the host stands for is not counted: the host's own parts have done its work. In
  // virtual time it is one of the described machine's parts.
  std::optional<EnergyTotals> totals() const;

 private:
  EnergyReading reading(const RunProgress& progress) const;

  Runtime& runtime_;
  uint64_t begin_ns_;
  uint64_t load_ns_ = 0;
  uint64_t next_ns_ = 0;
  std::optional<EnergyLedger> ledger_;  // none: see totals()
};

}  // namespace tierd
