// Statistics of drawn activity by counting.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "tools/lab/activity/activity_source.h"

namespace tierd {

using Bits = std::vector<uint64_t>;

inline uint32_t count_shared(const Bits& a, const Bits& b) {
  uint32_t count = 0;
  for (size_t w = 0; w < a.size(); ++w) count += static_cast<uint32_t>(std::popcount(a[w] & b[w]));
  return count;
}

// The tokens of one sequence: [layers][tokens] bits.
using Text = std::vector<std::vector<Bits>>;
inline Text draw_text(ActivitySource& source, uint32_t sequence, uint32_t tokens) {
  Text text(source.layers());
  for (uint32_t t = 0; t < tokens; ++t) {
    source.next_token(sequence);
    for (uint32_t l = 0; l < source.layers(); ++l) {
      const ActiveBits bits = source.active(sequence, l);
      text[l].emplace_back(bits.begin(), bits.end());
    }
  }
  return text;
}

inline std::vector<uint32_t> uses_of(const std::vector<Bits>& tokens, uint32_t neurons) {
  std::vector<uint32_t> uses(neurons, 0);
  for (const Bits& bits : tokens) {
    for (const uint32_t neuron : list_active(bits)) ++uses[neuron];
  }
  return uses;
}

// Counts the statistics of one layer of one text.
struct Counted {
  explicit Counted(const std::vector<Bits>& tokens, uint32_t neurons) : tokens_(tokens), n_(neurons) {}

  double active() const {
    double sum = 0;
    for (const Bits& bits : tokens_) sum += count_active(bits);
    return sum / n_ / static_cast<double>(tokens_.size());
  }
  // Returns the share of the active neurons that are active `distance` tokens later as well.
  double overlap(size_t distance) const {
    uint64_t shared = 0, all = 0;
    for (size_t t = 0; t + distance < tokens_.size(); ++t) {
      shared += count_shared(tokens_[t], tokens_[t + distance]);
      all += count_active(tokens_[t]);
    }
    return static_cast<double>(shared) / static_cast<double>(all);
  }
  double used_within(size_t k) const {
    uint64_t used = 0;
    for (size_t t = 0; t + k <= tokens_.size(); ++t) {
      Bits any = tokens_[t];
      for (size_t i = 1; i < k; ++i) {
        for (size_t w = 0; w < any.size(); ++w) any[w] |= tokens_[t + i][w];
      }
      used += count_active(any);
    }
    return static_cast<double>(used) / n_ / static_cast<double>(tokens_.size() - k + 1);
  }
  double share_of_hottest(double share) const {
    std::vector<uint32_t> uses = uses_of(tokens_, n_);
    std::sort(uses.begin(), uses.end(), std::greater<>());
    const auto hottest = static_cast<std::ptrdiff_t>(std::lround(share * n_));
    return static_cast<double>(std::accumulate(uses.begin(), uses.begin() + hottest, uint64_t{0})) /
           static_cast<double>(std::accumulate(uses.begin(), uses.end(), uint64_t{0}));
  }

 private:
  const std::vector<Bits>& tokens_;
  uint32_t n_;
};

// A statistic of several independent draws: its mean and its standard error.
struct Sampled {
  std::vector<double> values;

  double mean() const {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
  double deviation() const {
    double sum = 0;
    for (const double value : values) sum += (value - mean()) * (value - mean());
    return std::sqrt(sum / static_cast<double>(values.size() - 1));
  }
  double standard_error() const { return deviation() / std::sqrt(static_cast<double>(values.size())); }
};

}  // namespace tierd
