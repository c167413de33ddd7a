#include "tools/lab/activity/activity_source.h"

#include <bit>

#include "core/base/row_mask.h"

namespace tierd {
namespace {

template <class Each>
void for_each_active(uint64_t word, uint32_t first, Each each) {
  for (; word != 0; word &= word - 1) each(first + static_cast<uint32_t>(std::countr_zero(word)));
}

}  // namespace

uint32_t count_active(ActiveBits bits) {
  uint32_t count = 0;
  for (const uint64_t word : bits) count += static_cast<uint32_t>(std::popcount(word));
  return count;
}

std::vector<uint32_t> list_active(ActiveBits bits) {
  std::vector<uint32_t> neurons;
  neurons.reserve(count_active(bits));
  for (uint32_t w = 0; w < bits.size(); ++w)
    for_each_active(bits[w], w * 64, [&](uint32_t neuron) { neurons.push_back(neuron); });
  return neurons;
}

ActiveRows active_rows(const ActivitySource& source, uint32_t layer, std::span<const uint32_t> sequences) {
  ActiveRows rows;
  if (sequences.size() == 1) {
    rows.neurons = list_active(source.active(sequences.front(), layer));
    return rows;
  }
  std::vector<ActiveBits> of_row;
  for (const uint32_t sequence : sequences) of_row.push_back(source.active(sequence, layer));
  const uint32_t words = mask_words(static_cast<uint32_t>(sequences.size()));
  for (uint32_t w = 0; w < (source.neurons(layer) + 63) / 64; ++w) {
    uint64_t any = 0;
    for (const ActiveBits& bits : of_row) any |= bits[w];
    for_each_active(any, w * 64, [&](uint32_t neuron) {
      rows.neurons.push_back(neuron);
      const size_t mask = rows.row_masks.size();
      rows.row_masks.resize(mask + words, 0);
      for (size_t r = 0; r < of_row.size(); ++r)
        rows.row_masks[mask + r / 64] |= (of_row[r][w] >> neuron % 64 & 1) << r % 64;
    });
  }
  return rows;
}

}  // namespace tierd
