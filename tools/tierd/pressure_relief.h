// Lowers the budget of the lowest tier step by step while memory is short, down to a least budget. Raises it
// again afterwards, up to the capacity that was set last.
#pragma once

#include <cstdint>
#include <memory>

#include "core/config/config.h"
#include "core/report/figure.h"
#include "core/run/runtime.h"
#include "core/system/memory_pressure.h"

namespace tierd {

struct PressureCounts {
  uint64_t shrinks = 0;
  uint64_t grows = 0;

  static constexpr auto figures() {
    using F = PressureCounts;
    return std::tuple(Figure{&F::shrinks, "shrinks", Quantity::count, Adds::sum, "because memory was short"},
                      Figure{&F::grows, "grows", Quantity::count, Adds::sum, "when it was not any more"});
  }
};

class PressureRelief {
 public:
  struct Options {
    uint64_t step_bytes = 0;   // of one step
    uint64_t least_bytes = 0;  // the budget never goes below this
    uint64_t hold_ns = 0;      // time in which a step must show its effect, before the next
    uint64_t calm_ns = 0;      // time without pressure before the budget is raised by a step
    bool quiet = false;
  };

  // Creates the relief by the run's [pressure]; NULL where that is off. Errors: invalid_argument, which names
  // the key; unsupported where the source is not available or the budget cannot change.
  static Result<std::unique_ptr<PressureRelief>> create(Runtime& runtime, bool quiet);
  // The runtime must outlive the object.
  PressureRelief(Runtime& runtime, std::unique_ptr<PressureSource> source, const Options& options);

  // [main thread, between two steps] May change the budget. `now_ns`: of a monotonic clock.
  void look(uint64_t now_ns);
  const PressureCounts& counts() const { return counts_; }

 private:
  // Sets the budget. Returns false where the budget has not changed; an error is printed.
  bool move(uint64_t to, const char* why);

  Runtime& runtime_;
  std::unique_ptr<PressureSource> source_;
  Options options_;
  PressureCounts counts_;
  uint64_t wanted_ = 0;     // the capacity that was set last without pressure
  size_t changes_ = 0;      // number of budget changes seen so far
  uint64_t next_look_ = 0;  // ns
  uint64_t next_shrink_ = 0;
  uint64_t calm_since_ = 0;
};

}  // namespace tierd
