// Decides when predictor router prefetches its predictions.
#include <gtest/gtest.h>

#include "plugins/predictor/router/guess_record.hpp"

namespace tierd {
namespace {

constexpr uint32_t kRouters = 4;

// Predicts two experts, `right` of which are used. Returns whether they were to be prefetched.
bool pass(GuessRecord& record, uint32_t site, uint32_t right, uint32_t rows = 1) {
  record.guess(site, {2, 5});
  const bool pays = record.pays(site, rows);
  const std::vector<uint32_t> used = right == 2   ? std::vector<uint32_t>{2, 5}
                                     : right == 1 ? std::vector<uint32_t>{1, 5}
                                                  : std::vector<uint32_t>{0, 7};
  tierd_set_view truth = {};
  truth.size = sizeof truth;
  truth.site = site;
  truth.rows = rows;
  truth.n = static_cast<uint32_t>(used.size());
  truth.idx = used.data();
  record.judge(truth);
  return pays;
}

TEST(GuessRecord, BeginsByReadingAheadAndEndsWhereTooFewAreRight) {
  GuessRecord record(kRouters, 0.85);
  EXPECT_TRUE(pass(record, 0, 1));
  uint32_t passes = 1;
  while (pass(record, passes % kRouters, 1)) ++passes;
  EXPECT_LE(passes, 2 * kRouters) << "two tokens of guesses that are half right";
  EXPECT_LT(record.share_of(1), 0.85);
}

TEST(GuessRecord, GoesOnWhereEnoughAreRight) {
  GuessRecord record(kRouters, 0.85);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_TRUE(pass(record, i % kRouters, i % 10 == 0 ? 1 : 2)) << i;
  EXPECT_NEAR(record.share_of(1), 0.95, 0.02);
}

TEST(GuessRecord, EachSiteIsJudgedForItself) {
  GuessRecord record(kRouters, 0.85);
  for (uint32_t i = 0; i < 400; ++i) pass(record, i % kRouters, i % kRouters == 0 ? 0 : 2);
  EXPECT_FALSE(pass(record, 0, 0));
  for (uint32_t site = 1; site < kRouters; ++site) EXPECT_TRUE(pass(record, site, 2)) << site;
}

// The text may change, so predictions are judged even while nothing is prefetched.
TEST(GuessRecord, ComesBack) {
  GuessRecord record(kRouters, 0.85);
  for (uint32_t i = 0; i < 200; ++i) pass(record, i % kRouters, 0);
  EXPECT_FALSE(pass(record, 0, 2));
  for (uint32_t i = 0; i < 400; ++i) pass(record, i % kRouters, 2);
  EXPECT_TRUE(pass(record, 0, 2));
}

// The rows of a prompt use most experts together, so prompts say nothing about decoding.
TEST(GuessRecord, PassesOfSeveralRowsAreJudgedApart) {
  GuessRecord record(kRouters, 0.85);
  for (uint32_t i = 0; i < 100; ++i) pass(record, i % kRouters, 0);
  EXPECT_TRUE(pass(record, 0, 2, 16));
  for (uint32_t i = 0; i < 100; ++i) pass(record, i % kRouters, 2, 16);
  EXPECT_FALSE(pass(record, 0, 0));
}

TEST(GuessRecord, AllOfThemAreRightWhereAllAreUsed) {
  GuessRecord record(kRouters, 1);
  record.guess(0, {2, 5});
  tierd_set_view all = {};
  all.size = sizeof all;
  all.rows = 1;
  all.n = 8;
  record.judge(all);
  EXPECT_EQ(record.share_of(1), 1);
  EXPECT_TRUE(record.pays(0, 1));
}

TEST(GuessRecord, WhatWasNotGuessedIsNotJudged) {
  GuessRecord record(kRouters, 1);
  tierd_set_view truth = {};
  truth.size = sizeof truth;
  truth.rows = 1;
  record.judge(truth);
  EXPECT_TRUE(record.pays(0, 1));
}

}  // namespace
}  // namespace tierd
