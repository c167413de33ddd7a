#include "core/kernel/row_masks.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/base/row_mask.h"

namespace tierd {

uint64_t count_uses(const ActiveSet& set, uint32_t rows) {
  if (set.row_masks() == nullptr) return uint64_t{set.size()} * rows;
  const std::span masks(set.row_masks(), uint64_t{set.size()} * mask_words(rows));
  return std::accumulate(masks.begin(), masks.end(), uint64_t{0}, [](uint64_t sum, uint64_t word) {
    return sum + static_cast<uint64_t>(std::popcount(word));
  });
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

RowMasks::RowMasks(Dispatcher& dispatcher, const SiteTable& sites, uint32_t max_rows) : max_rows_(max_rows) {
  uint64_t bytes = 0;
  for (const Site& site : sites) {
    if (!site.given() && !site.chosen())
      bytes = std::max(bytes, uint64_t{site.n} * mask_words(max_rows) * sizeof(uint64_t));
  }
  lines_.resize(std::max<uint64_t>(1, divide_up(bytes, sizeof(Line))));
  pool_ = dispatcher.add_pool(std::as_writable_bytes(std::span(lines_)));
}

Span RowMasks::write(const ActiveSet& active, uint32_t n, uint32_t rows) {
  TIERD_CHECK(rows <= max_rows_);
  const uint32_t words = mask_words(rows);
  const uint64_t n_words = uint64_t{n} * words;
  uint64_t* const masks = lines_.front().words;
  std::fill_n(masks, n_words, 0);
  const uint64_t* from = active.row_masks();
  for (uint32_t i = 0; i < active.size(); ++i) {
    uint64_t* const mask = masks + uint64_t{active[i]} * words;
    if (from != nullptr) {
      std::copy_n(from + uint64_t{i} * words, words, mask);
    } else {
      std::fill_n(mask, words, ~uint64_t{0});
    }
  }
  return {kKernel, pool_, 0, static_cast<uint32_t>(n_words * sizeof(uint64_t))};
}

}  // namespace tierd
