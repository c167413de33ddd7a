#include "core/model/sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/check.h"

namespace tierd {

Logprobs logprobs_of(std::span<const float> logits, uint32_t token, size_t top) {
  TIERD_CHECK(token < logits.size());
  const float highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - highest);
  const double whole = highest + std::log(sum);
  Logprobs result;
  result.chosen = {token, logits[token] - whole};
  std::vector<uint32_t> order(top == 0 ? 0 : logits.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(top, order.size()));
  std::partial_sort(order.begin(), end, order.end(), [&](uint32_t a, uint32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  for (auto it = order.begin(); it != end; ++it) result.top.push_back({*it, logits[*it] - whole});
  return result;
}

}  // namespace tierd
