// Measures the time of a run's steps in the feed-forward networks, which papers report separately.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/engine/model_plan.h"
#include "core/kernel/observer.h"

namespace tierd {

// Returns whether an operator belongs to a feed-forward network.
bool is_network(OpGroup group);

class NetworkTime final : public SilentObserver {
 public:
  // Starts counting from zero. `plan` must outlive the counting.
  void begin(const ModelPlan& plan);
  // Returns the time with at least one message under way that a step waits for: a run of a network's site, or
  // a read or move of its weights on demand. Reads and moves ahead do not count.
  uint64_t ns() const;

  void delivered(const Message& message, const Done& done, bool withdrawn) override;

 private:
  const ModelPlan* plan_ = nullptr;                       // NULL: not begun
  std::vector<std::pair<uint64_t, uint64_t>> under_way_;  // [messages] begin and end, ns
};

}  // namespace tierd
