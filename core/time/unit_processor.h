// The times of a unit's processor: the machine's, a GPU, or the core of a near-data DIMM.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/agent/message.h"
#include "core/agent/program.h"
#include "core/base/result.h"
#include "core/time/machine.h"

namespace tierd {

// Neurons of a site in one edition, for a number of rows of a batch.
struct NeuronsWork {
  const SiteWork& site;
  const Encodings& encodings;
  uint32_t edition = 0;
  std::span<const Unit> units;
  uint32_t rows = 0;
  // [neurons of the site x mask_words(rows)] the rows that use each neuron; empty: all rows use all.
  std::span<const uint64_t> masks = {};
  bool after_wait = false;  // the processor was idle for some milliseconds
};

// One row's attention in one layer.
struct AttentionWork {
  double kv_bytes = 0;
  double multiply_adds = 0;
  double scores = 0;
};

// All times are in seconds. Pure.
class UnitProcessor {
 public:
  virtual ~UnitProcessor() = default;
  // The time before a message's work begins.
  virtual double launch() const { return 0; }
  virtual double neurons(const NeuronsWork& work) const = 0;
  virtual double attention(const AttentionWork& work) const = 0;
  // The time of floats that are touched one by one: norms, additions and the like.
  virtual double floats(double count) const = 0;
  // The time of a copy inside its memory.
  virtual double copy(double bytes) const = 0;
  // The time to expand bitmaps to this many bytes.
  virtual double expand(double) const { return 0; }
};

// Error: not_found, naming an encoding of the plan without a described rate.
Result<std::unique_ptr<UnitProcessor>> unit_processor(const ProcessorDescription& processor,
                                                      const ComputePlan& plan);
std::unique_ptr<UnitProcessor> unit_processor(const UnitDescription& unit);

}  // namespace tierd
