#include "core/model/sampling/logprobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tierd {
namespace {

TEST(Logprobs, AreTheLogarithmsOfTheSoftmax) {
  const std::vector<float> logits = {1, 3, 2, 3};
  const double whole = std::log(std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0));
  const Logprobs of = logprobs_of(logits, 2, 3);
  EXPECT_EQ(of.chosen.token, 2u);
  EXPECT_NEAR(of.chosen.logprob, 2 - whole, 1e-12);
  ASSERT_EQ(of.top.size(), 3u);
  EXPECT_EQ(of.top[0].token, 1u);
  EXPECT_EQ(of.top[1].token, 3u);
  EXPECT_EQ(of.top[2].token, 2u);
  EXPECT_NEAR(of.top[1].logprob, 3 - whole, 1e-12);
  EXPECT_TRUE(logprobs_of(logits, 0, 0).top.empty());
  EXPECT_EQ(logprobs_of(logits, 0, 99).top.size(), 4u);
}

TEST(Logprobs, SurviveLargeLogits) {
  const Logprobs of = logprobs_of(std::vector<float>{1e30f, -1e30f}, 0, 1);
  EXPECT_EQ(of.chosen.logprob, 0);
}

}  // namespace
}  // namespace tierd
