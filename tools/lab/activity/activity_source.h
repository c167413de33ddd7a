// What is active in a token, layer by layer, from whoever knows: a process that draws it, or a record. A
// kernel's Recording asks one of these about the sites of a pass.
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

  // A sequence goes on to its next token; the first call begins it. Others stay where they are.
  virtual void next_token(uint32_t sequence) = 0;
  // What the present token of a sequence uses, after its first `next_token`. Alive until its next one.
  virtual ActiveBits active(uint32_t sequence, uint32_t layer) const = 0;
};

uint32_t count_active(ActiveBits bits);
// The neurons, ascending.
std::vector<uint32_t> list_active(ActiveBits bits);

// What a pass over several sequences uses of a layer: neurons that any row uses, ascending, and which rows
// use each, [neurons x mask_words(rows)] as ActiveSet has them; no masks where there is one row.
struct ActiveRows {
  std::vector<uint32_t> neurons;
  std::vector<uint64_t> row_masks;
};
// `sequences`: [rows], each at its present token.
ActiveRows active_rows(const ActivitySource& source, uint32_t layer, std::span<const uint32_t> sequences);

}  // namespace tierd
