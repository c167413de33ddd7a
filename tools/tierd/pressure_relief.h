// Gives memory of the lowest tier back while it is short around the process, step by step down to a least,
// and takes it again when that is over, up to the capacity that somebody has set last.
#pragma once

#include <cstdint>
#include <memory>

#include "core/config/config.h"
#include "core/run/runtime.h"
#include "core/system/memory_pressure.h"

namespace tierd {

struct PressureCounts {
  uint64_t shrinks = 0;
  uint64_t grows = 0;
};

class PressureRelief {
 public:
  struct Options {
    uint64_t step_bytes = 0;   // given back or taken again at once
    uint64_t least_bytes = 0;  // kept in any case
    uint64_t hold_ns = 0;      // what was given back has to show before more is
    uint64_t calm_ns = 0;      // without pressure before a step is taken again
    bool quiet = false;
  };

  // As the run's [pressure] has it; NULL where that is off. Errors: invalid_argument naming a key;
  // unsupported, where nobody tells of pressure or the budget cannot move.
  static Result<std::unique_ptr<PressureRelief>> create(Runtime& runtime, bool quiet);
  // The runtime outlives it.
  PressureRelief(Runtime& runtime, std::unique_ptr<PressureSource> source, const Options& options);

  // [main thread, between two steps] `now_ns` of a clock that does not go back.
  void look(uint64_t now_ns);
  const PressureCounts& counts() const { return counts_; }

 private:
  // False: nothing has changed; why is told.
  bool move(uint64_t to, const char* why);

  Runtime& runtime_;
  std::unique_ptr<PressureSource> source_;
  Options options_;
  PressureCounts counts_;
  uint64_t wanted_ = 0;     // the capacity without pressure
  size_t changes_ = 0;      // of the budget that are known
  uint64_t next_look_ = 0;  // ns
  uint64_t next_shrink_ = 0;
  uint64_t calm_since_ = 0;
};

}  // namespace tierd
