#include "tools/lab/plan/mixture_cost.h"

#include <algorithm>

#include "core/base/check.h"

namespace tierd {

std::optional<MixtureCost> mixture_cost(const MixtureModel& model, uint64_t budget) {
  TIERD_CHECK(model.layers > 0 && model.used > 0 && model.used <= model.experts);
  if (budget < model.fixed_bytes) return std::nullopt;
  const auto room = static_cast<double>(budget - model.fixed_bytes);
  const auto shared = static_cast<double>(model.shared_bytes);
  const auto expert = static_cast<double>(model.expert_bytes);
  const double layers = model.layers, chosen = layers * model.used;

  MixtureCost cost;
  cost.streamed_bytes = std::max(0.0, shared - room);
  cost.kept = std::min(1.0, std::max(0.0, room - shared) / (layers * model.experts * expert));
  cost.hits = model.hits.value_or(cost.kept);
  const double missed = chosen * (1 - cost.hits);
  cost.reads = missed;
  cost.flash_bytes = missed * expert + cost.streamed_bytes;
  const double streaming = cost.streamed_bytes / model.flash.points().back().bytes_per_second;
  const double fetching = missed == 0 ? 0
                                      : model.flash.seconds(missed * expert, model.expert_bytes, true) +
                                            layers * model.first_read;
  cost.disk = streaming + fetching;
  const double sharing = shared / model.memory_rate, choosing = chosen * expert / model.memory_rate;
  cost.compute = sharing + choosing;
  cost.token = std::max(sharing, streaming) + std::max(choosing, fetching);
  return cost;
}

}  // namespace tierd
