// Compares closed forms with results derived by hand, and with the figures to which a study of the papers has
// fitted them.
#include "tools/lab/activity/closed_forms.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tierd {
namespace {

constexpr BetaRates kUniform = {1, 1};

TEST(ClosedForms, OfUniformRates) {
  EXPECT_DOUBLE_EQ(mean_rate(kUniform), 0.5);
  EXPECT_DOUBLE_EQ(lasting_overlap(kUniform), 2.0 / 3);
  EXPECT_DOUBLE_EQ(overlap_after(kUniform, 0.5, 1), 2.0 / 3 + 0.5 / 3);
  EXPECT_DOUBLE_EQ(overlap_after(kUniform, 0.5, 0), 1);
  EXPECT_DOUBLE_EQ(used_within(kUniform, 0.3, 1), 0.5);
  // Independent tokens: 1 - E[(1-p)^k].
  for (uint32_t k = 1; k < 9; ++k) EXPECT_NEAR(used_within(kUniform, 0, k), 1 - 1.0 / (k + 1), 1e-12);
  // Events that stay: no neuron is ever new.
  EXPECT_NEAR(used_within(kUniform, 1, 7), 0.5, 1e-12);
  EXPECT_NEAR(new_in_token(kUniform, 1, 3), 0, 1e-12);
  // The upper half of [0, 1] has 3/4 of the area under y = x.
  EXPECT_NEAR(share_of_hottest(kUniform, 0.5), 0.75, 1e-9);
  EXPECT_NEAR(copy_follows(kUniform, 0, 0.2), 1, 1e-9);
  // Over p in [0, 1], max(p - d, 0) and max(p + d - 1, 0) have the means (1-d)^2 / 2 and d^2 / 2.
  double sum = 0;
  for (uint32_t i = 0; i < 16; ++i) {
    const double d = 0.1 * (i + 0.5) / 16;
    sum += ((1 - d) * (1 - d) + d * d) / 2 / 16;
  }
  EXPECT_NEAR(copy_follows(kUniform, 0.1, 1), sum / 0.5, 1e-5);
}

// A token's set is its new neurons and those of the token before: two ways to state the overlap.
TEST(ClosedForms, AgreeWithEachOther) {
  for (const BetaRates& rates : {kUniform, BetaRates{0.194, 1.747}, BetaRates{4.25, 4.25}}) {
    for (const double lambda : {0.0, 0.16, 0.845}) {
      EXPECT_NEAR(new_in_token(rates, lambda, 1), mean_rate(rates) * (1 - overlap_after(rates, lambda, 1)),
                  1e-12);
      for (uint32_t k = 1; k < 20; ++k)
        EXPECT_LT(new_in_token(rates, lambda, k + 1), new_in_token(rates, lambda, k));
    }
  }
}

TEST(ClosedForms, TopKOfHiddenStates) {
  EXPECT_NEAR(top_k_precision(0, 0.3), 0.3, 1e-3);  // unrelated states overlap by chance
  EXPECT_EQ(top_k_precision(1, 0.3), 1);
  EXPECT_NEAR(top_k_precision(0.9999999, 0.3), 1, 1e-3);
  // "Top-K precision > 80 %" at a cosine of 0.95; the study has 0.80 at 30 % kept and 0.84 at 50 %, with 0.78
  // as the lower limit.
  EXPECT_NEAR(top_k_precision(0.95, 0.3), 0.80, 0.005);
  EXPECT_NEAR(top_k_precision(0.95, 0.5), 0.84, 0.005);
}

// The figures to which the profiles are fitted.
TEST(ClosedForms, OfTheProfiles) {
  const BetaRates flash = {0.194, 1.747};
  EXPECT_NEAR(mean_rate(flash), 0.100, 0.0005);
  EXPECT_NEAR(used_within(flash, 0.16, 5), 0.240, 0.0005);
  EXPECT_NEAR(new_in_token(flash, 0.16, 4), 0.024, 0.0005);
  EXPECT_NEAR(share_of_hottest(flash, 0.2), 0.796, 0.005);  // not a fitted figure
  // k = 1 ... 6 of the study, in percent of the neurons that a token reads.
  const double study[] = {4.95, 3.70, 2.91, 2.38, 2.00, 1.72};
  for (uint32_t k = 1; k <= 6; ++k) EXPECT_NEAR(100 * new_in_token(flash, 0.16, k), study[k - 1], 0.06) << k;
  const BetaRates hermes = {0.12, 0.527};
  EXPECT_NEAR(overlap_after(hermes, 0.6875, 1), 0.90, 0.005);
  EXPECT_NEAR(overlap_after(hermes, 0.845, 1), 0.95, 0.005);
  EXPECT_NEAR(share_of_hottest(hermes, 0.2), 0.80, 0.005);
  const BetaRates m2cache = {0.133, 0.534};
  EXPECT_NEAR(overlap_after(m2cache, 0.375, 1), 0.80, 0.005);
  EXPECT_NEAR(mean_rate(m2cache), 0.20, 0.005);
  // With the hottest half in a cache, 18 % are loaded; the study's LFU has 18.8 %.
  const BetaRates activeflow = {4.25, 4.25};
  EXPECT_NEAR(mean_rate(activeflow) * (1 - share_of_hottest(activeflow, 0.5)), 0.185, 0.005);
}

}  // namespace
}  // namespace tierd
