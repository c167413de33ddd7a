// What a predictor needs that scores every neuron of a site for every row of a batch, and calls active what
// lies above a bound. Optional; C++17, header-only.
#ifndef TIERD_ROW_SCORES_HPP
#define TIERD_ROW_SCORES_HPP

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tierd/plugin.hpp"

namespace tierd {

// Collects the active neurons of a batch, row after row, and answers `predict` with them.
class RowScores {
 public:
  // A batch of so many rows for a site of `n` neurons.
  void begin(uint32_t n, uint32_t rows) {
    words_ = (rows + 63) / 64;
    active_.assign(uint64_t{n} * words_, 0);
    n_ = n;
  }
  void activate(uint32_t neuron, uint32_t row) {
    active_[uint64_t{neuron} * words_ + row / 64] |= uint64_t{1} << row % 64;
  }
  // Neurons that some row uses, and which rows do. Returns how many that are.
  uint32_t answer(tierd_set_out& out) const {
    out.n = 0;
    for (uint32_t neuron = 0; neuron < n_; ++neuron) {
      const uint64_t* mask = active_.data() + uint64_t{neuron} * words_;
      if (std::all_of(mask, mask + words_, [](uint64_t word) { return word == 0; })) continue;
      if (out.row_mask != nullptr) std::copy_n(mask, words_, out.row_mask + uint64_t{out.n} * words_);
      out.idx[out.n++] = neuron;
    }
    return out.n;
  }

 private:
  uint32_t n_ = 0;
  uint32_t words_ = 0;
  std::vector<uint64_t> active_;  // [n x words]
};

}  // namespace tierd
#endif
