#include "tiers/dram/choose_experts.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tierd {
namespace {

bool larger(float a, float b) {
  return a > b || (std::isnan(a) && !std::isnan(b));
}

}  // namespace

void choose_experts(std::span<float> scores, uint32_t picks, bool sum_to_one) {
  const float highest = *std::max_element(scores.begin(), scores.end());
  float whole = 0;
  for (float& score : scores) {
    score = std::exp(score - highest);
    whole += score;
  }
  for (float& score : scores) score /= whole;

  // Finds the last expert in the order of picking; it and those before are the first of a sorted list.
  float sum = 0;
  float last = std::numeric_limits<float>::infinity();
  uint32_t last_at = 0;
  const auto before = [&](size_t i) {  // in the order of picking, up to and including `last`
    return larger(scores[i], last) || (!larger(last, scores[i]) && i <= last_at);
  };
  for (uint32_t pick = 0; pick < picks; ++pick) {
    size_t best = scores.size();
    for (size_t i = 0; i < scores.size(); ++i) {
      if (pick != 0 && before(i)) continue;
      if (best == scores.size() || larger(scores[i], scores[best])) best = i;
    }
    last = scores[best];
    last_at = static_cast<uint32_t>(best);
    sum += last;
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!before(i)) {
      scores[i] = 0;
    } else if (sum_to_one) {
      scores[i] /= sum;
    }
  }
}

}  // namespace tierd
