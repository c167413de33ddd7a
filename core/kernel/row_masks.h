// Which rows of a batch use which neurons, as predictors say it and as agents read it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kernel/active_set.h"
#include "core/kernel/dispatcher.h"
#include "core/kernel/site.h"
#include "core/message/message.h"

namespace tierd {

// Neurons, summed over the rows that use them.
uint64_t count_uses(const ActiveSet& set, uint32_t rows);

// Masks of mask_words(rows) each: clears what lies beyond the rows. True if every row still uses all.
bool trim_row_masks(std::vector<uint64_t>& masks, uint32_t rows);

// The masks of the present pass, in a pool of the kernel's that messages name.
class RowMasks {
 public:
  // Room for any site that is predicted, and so many rows. Set-up only: adds a pool.
  RowMasks(Dispatcher& dispatcher, const SiteTable& sites, uint32_t max_rows);

  // For the agents: uint64_t[n x mask_words(rows)], by the neuron's number. Stays until the next call.
  Span write(const ActiveSet& active, uint32_t n, uint32_t rows);
  const uint64_t* written() const { return lines_.front().words; }

 private:
  struct alignas(kSpanUnit) Line {
    uint64_t words[kSpanUnit / sizeof(uint64_t)];
  };
  uint32_t max_rows_;
  std::vector<Line> lines_;
  uint16_t pool_;
};

}  // namespace tierd
