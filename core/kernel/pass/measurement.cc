#include "core/kernel/pass/measurement.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/row_mask.h"

namespace tierd {

void copy_contributions(const Dispatcher& dispatcher, const Site& site, uint16_t agent,
                        const ActiveSet& neurons, uint32_t rows, std::span<float> contribution) {
  const uint32_t stride = site.contribution.stride;
  const float* const from = dispatcher.values(agent, site.contribution.offset, uint64_t{rows} * stride);
  for (uint32_t r = 0; r < rows; ++r) {
    const float* const line = from + uint64_t{r} * stride;
    for (uint32_t i = 0; i < neurons.size(); ++i)
      contribution[uint64_t{r} * site.n + neurons[i]] = line[neurons[i]];
  }
}

ActiveSet compare_with_prediction(std::span<const float> contribution, uint32_t rows,
                                  const uint64_t* predicted, SiteUse& use) {
  const auto n = static_cast<uint32_t>(contribution.size() / rows);
  const uint32_t words = mask_words(rows);
  std::vector<uint64_t> masks(uint64_t{n} * words, 0);
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t i = 0; i < n; ++i) {
      const float gave = contribution[uint64_t{r} * n + i];
      if (gave == 0) continue;
      masks[uint64_t{i} * words + r / 64] |= uint64_t{1} << r % 64;
      const bool missed = predicted != nullptr && !mask_has(predicted + uint64_t{i} * words, r);
      ++use.active;
      use.missed += missed ? 1 : 0;
      use.mass += gave;
      use.missed_mass += missed ? gave : 0;
    }
  }
  std::vector<uint32_t> neurons;
  std::vector<uint64_t> listed;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t* const mask = masks.data() + uint64_t{i} * words;
    if (std::all_of(mask, mask + words, [](uint64_t word) { return word == 0; })) continue;
    neurons.push_back(i);
    if (rows > 1) listed.insert(listed.end(), mask, mask + words);
  }
  return ActiveSet::of(std::move(neurons), std::move(listed));
}

}  // namespace tierd
