// Compares the neurons of a step with other lists of neurons.
#include "core/kernel/active_set.h"

#include <gtest/gtest.h>

#include "core/base/random.h"

namespace tierd {
namespace {

TEST(ActiveSet, CountsWhatItHasInCommonWithAList) {
  Random random(1);
  const auto draw = [&](uint32_t n, uint32_t one_of) {
    std::vector<uint32_t> list;
    for (uint32_t i = 0; i < n; ++i) {
      if (random.below(one_of) == 0) list.push_back(i);
    }
    return list;
  };
  for (const uint32_t ours : {1u, 2u, 5u, 1000u}) {
    for (const uint32_t theirs : {1u, 3u, 1000u}) {
      const ActiveSet some = ActiveSet::of(draw(300, ours)), all = ActiveSet::all(200);
      const std::vector<uint32_t> list = draw(300, theirs);
      for (const ActiveSet& set : {some, all}) {
        const auto common = std::ranges::count_if(list, [&](uint32_t i) { return set.contains(i); });
        EXPECT_EQ(set.count_common(list), static_cast<uint32_t>(common));
      }
    }
  }
}

}  // namespace
}  // namespace tierd
