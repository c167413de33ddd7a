// How long a run's steps spend in the feed-forward networks, as papers measure them apart.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/engine/model_plan.h"
#include "core/kernel/observer.h"

namespace tierd {

// Whether an operator belongs to a feed-forward network.
bool is_network(OpGroup group);

class NetworkTime final : public SilentObserver {
 public:
  // Begins to count: forgets what came before. `plan` outlives the counting.
  void begin(const ModelPlan& plan);
  // The time with at least one message under way for which a step waits: a run of a network's site, or a read
  // or a move of its weights on demand. Weights that are read or moved ahead do not count.
  uint64_t ns() const;

  void delivered(const Message& message, const Done& done, bool withdrawn) override;

 private:
  const ModelPlan* plan_ = nullptr;                       // NULL: not begun
  std::vector<std::pair<uint64_t, uint64_t>> under_way_;  // [messages] begin and end, ns
};

}  // namespace tierd
