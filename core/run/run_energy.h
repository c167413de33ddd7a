// What a run costs in joules and grams of CO2, reckoned or measured while it goes on.
#pragma once

#include <memory>
#include <optional>

#include "core/run/runtime.h"
#include "core/watch/energy/energy_ledger.h"

namespace tierd {

// How far a run has come, as whoever runs it counts.
struct RunProgress {
  uint64_t decode_ns = 0;  // by the run's clock
  uint64_t decoded_tokens = 0;
  uint64_t generated_tokens = 0;  // those, and the first of each text
};

// One thread, the runtime's.
class RunEnergy {
 public:
  // Begins to count. What has a meter is measured, unless time is virtual. The runtime outlives it.
  explicit RunEnergy(Runtime& runtime);
  RunEnergy(Runtime& runtime, EnergyMeters meters);

  // All time so far was loading.
  void loaded();
  // Between two steps; looks at meters at most once a second.
  void look(const RunProgress& progress);
  // Where a part of the run begins or ends.
  void look_now(const RunProgress& progress);
  // As of the last look. None: what the machine draws is not known (RunPlan::power). By the wall clock a GPU
  // that the host stands for is not counted: the host's own parts have done its work. In virtual time it is
  // one of the described machine's.
  std::optional<EnergyTotals> totals() const;

 private:
  EnergyReading reading(const RunProgress& progress) const;

  Runtime& runtime_;
  uint64_t begin_ns_;
  uint64_t load_ns_ = 0;
  uint64_t next_ns_ = 0;
  std::optional<EnergyLedger> ledger_;  // none: as totals()
};

}  // namespace tierd
