#include "tiers/dram/choose_experts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/check.h"

namespace tierd {
namespace {

bool larger(float a, float b) {
  return a > b || (std::isnan(a) && !std::isnan(b));
}

// Finds the largest of n values, one after the other; among equals the lower number comes first.
template <class Value>
class Largest {
 public:
  Largest(uint32_t n, Value value) : n_(n), value_(value) {}

  // Returns the number of the next one. There is one.
  uint32_t next() {
    uint32_t best = n_;
    for (uint32_t i = 0; i < n_; ++i) {
      if (has(i)) continue;
      if (best == n_ || larger(value_(i), value_(best))) best = i;
    }
    TIERD_CHECK(best < n_);
    last_ = value_(best);
    last_at_ = best;
    any_ = true;
    return best;
  }

  // Returns whether next() has returned this number: the values found are the first ones of a sorted list.
  bool has(uint32_t i) const {
    if (!any_) return false;
    const float value = value_(i);
    return larger(value, last_) || (!larger(last_, value) && i <= last_at_);
  }

 private:
  uint32_t n_;
  Value value_;
  float last_ = 0;
  uint32_t last_at_ = 0;
  bool any_ = false;
};

void score(RouterScore kind, std::span<float> scores) {
  if (kind == RouterScore::sigmoid) {
    for (float& value : scores) value = 1 / (1 + std::exp(-value));
    return;
  }
  const float highest = *std::max_element(scores.begin(), scores.end());
  float whole = 0;
  for (float& value : scores) {
    value = std::exp(value - highest);
    whole += value;
  }
  for (float& value : scores) value /= whole;
}

// Returns a bit for each group that is used.
template <class Rank>
uint64_t best_groups(const ExpertChoice& routing, uint32_t of_group, Rank rank) {
  const auto group_score = [&](uint32_t group) {
    Largest best(of_group, [&](uint32_t i) { return rank(group * of_group + i); });
    float sum = 0;
    for (uint32_t k = 0; k < routing.group_best; ++k) sum += rank(group * of_group + best.next());
    return sum;
  };
  Largest groups(routing.groups, group_score);
  uint64_t used = 0;
  for (uint32_t k = 0; k < routing.groups_used; ++k) used |= uint64_t{1} << groups.next();
  return used;
}

}  // namespace

void choose_experts(std::span<float> scores, const ExpertChoice& routing, const float* correction) {
  score(routing.score, scores);
  const auto n = static_cast<uint32_t>(scores.size());
  const auto rank = [&](uint32_t e) { return correction == nullptr ? scores[e] : scores[e] + correction[e]; };

  const uint32_t of_group = routing.groups == 0 ? n : n / routing.groups;
  const uint64_t used = routing.groups == 0 ? 1 : best_groups(routing, of_group, rank);
  Largest picked(n, [&](uint32_t e) {
    return (used >> (e / of_group) & 1) == 0 ? -std::numeric_limits<float>::infinity() : rank(e);
  });
  float sum = 0;
  for (uint32_t pick = 0; pick < routing.picks; ++pick) sum += scores[picked.next()];
  if (routing.score == RouterScore::sigmoid) sum += 1e-20F;  // all may be 0
  for (uint32_t e = 0; e < n; ++e) {
    if (!picked.has(e)) {
      scores[e] = 0;
      continue;
    }
    if (routing.sum_to_one) scores[e] /= sum;
    if (routing.scale != 1) scores[e] *= routing.scale;
  }
}

}  // namespace tierd
