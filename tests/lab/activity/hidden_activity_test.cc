#include "tools/lab/activity/hidden_activity.h"

#include <gtest/gtest.h>

#include "tests/lab/activity/measured.h"
#include "tools/lab/activity/closed_forms.h"
#include "tools/lab/activity/profile.h"

namespace tierd {
namespace {

// The mean over 12 tokens with independent states, of three pairs of layers. The tolerance is four standard
// errors of these tokens.
TEST(HiddenActivity, LayersShareWhatTheCosineSays) {
  const auto profile = read_activity_profile("activeflow");
  ASSERT_TRUE(profile.ok()) << profile.error().line();
  ASSERT_TRUE(profile->cosine);
  for (const double kept : {0.3, 0.4, 0.5}) {
    HiddenActivity activity({.layers = 4, .channels = 4096, .cosine = *profile->cosine, .kept = kept});
    Sampled precision;
    for (uint32_t t = 0; t < 12; ++t) {
      activity.next_token(0);
      double sum = 0;
      for (uint32_t l = 1; l < 4; ++l) {
        const ActiveBits before = activity.active(0, l - 1), now = activity.active(0, l);
        EXPECT_EQ(count_active(now), static_cast<uint32_t>(std::lround(kept * 4096)));
        sum += count_shared({before.begin(), before.end()}, {now.begin(), now.end()}) /
               static_cast<double>(count_active(now));
      }
      precision.values.push_back(sum / 3);
    }
    const double expected = top_k_precision(*profile->cosine, kept);
    EXPECT_NEAR(precision.mean(), expected, 4 * precision.standard_error()) << kept;
    EXPECT_GE(precision.mean(), 0.78) << kept;
  }
}

}  // namespace
}  // namespace tierd
