#include "core/model/sampling/penalties.h"

#include <algorithm>
#include <cmath>

namespace tierd {

void Penalties::accept(uint32_t token) {
  if (!active()) return;
  ++counts_[token];
  if (options_.repeat_last_n < 0) return;
  last_.push_back(token);
  if (last_.size() <= static_cast<size_t>(options_.repeat_last_n)) return;
  const auto oldest = counts_.find(last_.front());
  last_.pop_front();
  if (--oldest->second == 0) counts_.erase(oldest);
}

void Penalties::apply(std::span<float> logits) const {
  for (const auto& [token, count] : counts_) {
    if (token >= logits.size()) continue;
    if (std::isinf(logits[token])) continue;
    double logit = logits[token];
    logit = logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
    logit -= options_.presence_penalty + static_cast<double>(count) * options_.frequency_penalty;
    logits[token] = static_cast<float>(std::clamp<double>(logit, -kLargestLogit, kLargestLogit));
  }
}

}  // namespace tierd
