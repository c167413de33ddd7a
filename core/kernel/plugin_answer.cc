#include "core/kernel/plugin_answer.h"

#include <fmt/format.h>

#include <numeric>

namespace tierd {

Status check_neurons(std::span<const uint32_t> neurons, uint32_t n) {
  for (size_t i = 0; i < neurons.size(); ++i) {
    if (neurons[i] >= n || (i > 0 && neurons[i] <= neurons[i - 1])) {
      return Error{
          Code::plugin_fault, "",
          fmt::format("neuron {} at place {}: expected ascending numbers below {}", neurons[i], i, n)};
    }
  }
  return {};
}

Result<std::vector<uint32_t>> neurons_of(const tierd_ahead& wish, uint32_t n) {
  if (wish.idx == nullptr) {
    std::vector<uint32_t> all(n);
    std::iota(all.begin(), all.end(), 0u);
    return all;
  }
  if (wish.n > n) return Error{Code::plugin_fault, "", fmt::format("{} of {} neurons", wish.n, n)};
  const std::span<const uint32_t> listed(wish.idx, wish.n);
  TIERD_TRY(check_neurons(listed, n));
  return std::vector<uint32_t>(listed.begin(), listed.end());
}

}  // namespace tierd
