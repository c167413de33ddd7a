#include "core/model/sampling/penalties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tierd {
namespace {

using testing::ElementsAre;

std::vector<float> after(const PenaltyOptions& options, const std::vector<uint32_t>& said) {
  Penalties penalties(options);
  for (const uint32_t token : said) penalties.accept(token);
  std::vector<float> logits = {4, -4, 4, -4};
  penalties.apply(logits);
  return logits;
}

TEST(Penalties, RepetitionDividesWhatIsPositiveAndMultipliesWhatIsNegative) {
  EXPECT_THAT(after({.repeat_penalty = 2}, {0, 1, 0}), ElementsAre(2, -8, 4, -4));
}

TEST(Penalties, FrequencyCountsAndPresenceDoesNot) {
  EXPECT_THAT(after({.presence_penalty = 1}, {0, 1, 0}), ElementsAre(3, -5, 4, -4));
  EXPECT_THAT(after({.frequency_penalty = 1}, {0, 1, 0}), ElementsAre(2, -5, 4, -4));
  EXPECT_THAT(after({.frequency_penalty = -1}, {0, 1, 0}), ElementsAre(6, -3, 4, -4));
}

TEST(Penalties, LookBackSoFarAndNoFurther) {
  const std::vector<uint32_t> said = {0, 1, 2, 1};
  EXPECT_THAT(after({.repeat_last_n = 2, .frequency_penalty = 1}, said), ElementsAre(4, -5, 3, -4));
  EXPECT_THAT(after({.repeat_last_n = 0, .frequency_penalty = 1}, said), ElementsAre(4, -4, 4, -4));
  EXPECT_THAT(after({.repeat_last_n = -1, .frequency_penalty = 1}, said), ElementsAre(3, -6, 3, -4));
}

TEST(Penalties, PassOverTokensThatTheModelHasNot) {
  EXPECT_THAT(after({.presence_penalty = 1}, {99}), ElementsAre(4, -4, 4, -4));
}

}  // namespace
}  // namespace tierd
