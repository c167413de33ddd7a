// The interface to the active neurons of a token, layer by layer: a process that draws them, or a record. A
// kernel's Recording queries it about the sites of a pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tierd {

// A bit for each neuron of a layer, the lowest of the first word first; bits behind the last neuron are 0.
using ActiveBits = std::span<const uint64_t>;

class ActivitySource {
 public:
  virtual ~ActivitySource() = default;

  virtual uint32_t layers() const = 0;
  virtual uint32_t neurons(uint32_t layer) const = 0;
  virtual uint32_t sequences() const = 0;

  // Advances a sequence to its next token; the first call begins it. Other sequences do not change.
  virtual void next_token(uint32_t sequence) = 0;
  // Returns the active neurons of a sequence's present token. Valid until its `next_token`.
  virtual ActiveBits active(uint32_t sequence, uint32_t layer) const = 0;
};

uint32_t count_active(ActiveBits bits);
// Returns the active neurons, ascending.
std::vector<uint32_t> list_active(ActiveBits bits);

// The neurons of a layer that a pass over several sequences uses, ascending, and the rows that use each,
// [neurons x mask_words(rows)] as in ActiveSet; no masks for a single row.
struct ActiveRows {
  std::vector<uint32_t> neurons;
  std::vector<uint64_t> row_masks;
};
// `sequences`: [rows], each at its present token.
ActiveRows active_rows(const ActivitySource& source, uint32_t layer, std::span<const uint32_t> sequences);

}  // namespace tierd
