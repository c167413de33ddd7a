// The neurons of a site that a step uses: a list, ascending, or all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tierd {

class ActiveSet {
 public:
  static ActiveSet all(uint32_t n) {
    ActiveSet set;
    set.n_ = n;
    set.all_ = true;
    return set;
  }
  // `neurons` ascending, without duplicates.
  static ActiveSet of(std::vector<uint32_t> neurons) {
    ActiveSet set;
    set.n_ = static_cast<uint32_t>(neurons.size());
    set.neurons_ = std::move(neurons);
    return set;
  }

  bool is_all() const { return all_; }
  uint32_t size() const { return n_; }
  uint32_t operator[](uint32_t i) const { return all_ ? i : neurons_[i]; }
  bool contains(uint32_t neuron) const {
    return all_ ? neuron < n_ : std::binary_search(neurons_.begin(), neurons_.end(), neuron);
  }
  // nullptr when all.
  const uint32_t* indices() const { return all_ ? nullptr : neurons_.data(); }

 private:
  bool all_ = false;
  uint32_t n_ = 0;
  std::vector<uint32_t> neurons_;
};

}  // namespace tierd
