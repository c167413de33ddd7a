// The neurons of a site that a step uses: an ascending list, or all; optionally with row masks and scores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tierd {

class ActiveSet {
 public:
  // `scores`: [n]; empty: no strategy gave any.
  static ActiveSet all(uint32_t n, std::vector<float> scores = {}) {
    ActiveSet set;
    set.n_ = n;
    set.all_ = true;
    set.scores_ = std::move(scores);
    return set;
  }
  // `neurons` ascending, without duplicates. `row_masks`: [neurons x mask_words(rows)]; empty: every row uses
  // all neurons. `scores`: [neurons]; empty: no strategy gave any.
  static ActiveSet of(std::vector<uint32_t> neurons, std::vector<uint64_t> row_masks = {},
                      std::vector<float> scores = {}) {
    ActiveSet set;
    set.n_ = static_cast<uint32_t>(neurons.size());
    set.neurons_ = std::move(neurons);
    set.row_masks_ = std::move(row_masks);
    set.scores_ = std::move(scores);
    return set;
  }

  bool is_all() const { return all_; }
  uint32_t size() const { return n_; }
  uint32_t operator[](uint32_t i) const { return all_ ? i : neurons_[i]; }
  bool contains(uint32_t neuron) const {
    return all_ ? neuron < n_ : std::binary_search(neurons_.begin(), neurons_.end(), neuron);
  }
  // Returns how many of `neurons`, ascending, are in this set.
  uint32_t count_common(std::span<const uint32_t> neurons) const {
    if (all_) return static_cast<uint32_t>(std::ranges::lower_bound(neurons, n_) - neurons.begin());
    uint32_t common = 0;
    for (size_t i = 0, j = 0; i < neurons.size() && j < n_;) {
      const uint32_t theirs = neurons[i], ours = neurons_[j];
      common += theirs == ours ? 1 : 0;
      i += theirs <= ours ? 1 : 0;
      j += ours <= theirs ? 1 : 0;
    }
    return common;
  }
  // nullptr if the set is all neurons.
  const uint32_t* indices() const { return all_ ? nullptr : neurons_.data(); }
  // nullptr if every row uses all neurons of the set.
  const uint64_t* row_masks() const { return row_masks_.empty() ? nullptr : row_masks_.data(); }
  // [size()], or nullptr: see tierd_set_view.
  const float* scores() const { return scores_.empty() ? nullptr : scores_.data(); }

 private:
  bool all_ = false;
  uint32_t n_ = 0;
  std::vector<uint32_t> neurons_;
  std::vector<uint64_t> row_masks_;
  std::vector<float> scores_;
};

}  // namespace tierd
