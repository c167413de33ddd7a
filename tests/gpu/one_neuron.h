// The smallest computation for a GPU, and a clock for it.
#pragma once

#include <cstdint>

#include "core/agent/clock.h"
#include "core/agent/program.h"

namespace tierd {

// A clock that the test advances.
class ManualClock final : public Clock {
 public:
  uint64_t now_ns() const override { return now; }
  bool wait(Waiter&) override { return true; }
  uint64_t now = 1'000'000;
};

// Returns a plan with one site of one neuron, 16 rows of 8 columns in f32, for two tokens.
inline ComputePlan plan_of_one_neuron() {
  ComputePlan plan;
  plan.buffers = {{"in", 8, 0}, {"out", 16, 0}};
  plan.max_rows = 2;
  plan.context = 1;
  SiteWork site;
  site.cut = Rows{.n_in = 8, .stacked = {16}, .rows = 16};
  site.editions = {0};
  site.in = 0;
  site.out = 1;
  plan.editions = {{Encoding::f32}};
  plan.sites = {site};
  return plan;
}
inline constexpr uint64_t kNeuronOfOne = 16 * 8 * sizeof(float);  // in bytes

}  // namespace tierd
