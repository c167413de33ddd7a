// What computes a unit's work, and how long each kind of it takes there: the machine's processor, a GPU, or
// the core of a near-data DIMM.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/agent/message.h"
#include "core/agent/program.h"
#include "core/base/result.h"
#include "core/time/machine.h"

namespace tierd {

// Neurons of a site in one edition, for so many rows of a batch.
struct NeuronsWork {
  const SiteWork& site;
  const Encodings& encodings;
  uint32_t edition = 0;
  std::span<const Unit> units;
  uint32_t rows = 0;
  // Which rows use which neuron, [neurons of the site x mask_words(rows)]; empty: all use all.
  std::span<const uint64_t> masks = {};
  bool after_wait = false;  // the processor had nothing to do for some milliseconds
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
  // Before a message's work begins.
  virtual double launch() const { return 0; }
  virtual double neurons(const NeuronsWork& work) const = 0;
  virtual double attention(const AttentionWork& work) const = 0;
  // So many floats that are touched one by one: norms, additions and the like.
  virtual double floats(double count) const = 0;
  // Inside its memory.
  virtual double copy(double bytes) const = 0;
  // So many bytes that bitmaps become.
  virtual double expand(double) const { return 0; }
};

// Error: not_found, naming an encoding of the plan whose rate is not in the description.
Result<std::unique_ptr<UnitProcessor>> unit_processor(const ProcessorDescription& processor,
                                                      const ComputePlan& plan);
std::unique_ptr<UnitProcessor> unit_processor(const UnitDescription& unit);

}  // namespace tierd
