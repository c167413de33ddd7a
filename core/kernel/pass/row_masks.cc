#include "core/kernel/pass/row_masks.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/base/row_mask.h"

namespace tierd {

uint64_t count_bits(std::span<const uint64_t> words) {
  return std::accumulate(words.begin(), words.end(), uint64_t{0}, [](uint64_t sum, uint64_t word) {
    return sum + static_cast<uint64_t>(std::popcount(word));
  });
}

uint64_t count_uses(const ActiveSet& set, uint32_t rows) {
  if (set.row_masks() == nullptr) return uint64_t{set.size()} * rows;
  return count_bits({set.row_masks(), uint64_t{set.size()} * mask_words(rows)});
}

bool trim_row_masks(std::vector<uint64_t>& masks, uint32_t rows) {
  const uint32_t words = mask_words(rows);
  const uint64_t last = rows % 64 == 0 ? ~uint64_t{0} : (uint64_t{1} << rows % 64) - 1;
  bool everything = true;
  for (size_t i = 0; i < masks.size(); ++i) {
    const uint64_t full = i % words == words - 1 ? last : ~uint64_t{0};
    masks[i] &= full;
    everything &= masks[i] == full;
  }
  return everything;
}

void write_row_masks(const ActiveSet& active, uint32_t n, uint32_t rows, std::vector<uint64_t>& masks) {
  const uint32_t words = mask_words(rows);
  masks.assign(uint64_t{n} * words, 0);
  const uint64_t* from = active.row_masks();
  for (uint32_t i = 0; i < active.size(); ++i) {
    uint64_t* const mask = masks.data() + uint64_t{active[i]} * words;
    if (from != nullptr) {
      std::copy_n(from + uint64_t{i} * words, words, mask);
    } else {
      std::fill_n(mask, words, ~uint64_t{0});
    }
  }
}

}  // namespace tierd
