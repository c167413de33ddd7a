#include "tools/measurement/peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tierd {
namespace {

using testing::HasSubstr;
using testing::Not;

RatePattern pattern(const std::string& expression) {
  auto compiled = RatePattern::compile(expression);
  EXPECT_TRUE(compiled.ok()) << compiled.error().line();
  return *compiled;
}

TEST(RatePattern, TakesTheFirstGroupOfTheFirstMatch) {
  const RatePattern rate = pattern(R"("avg_ts": *([0-9.]+))");
  const auto found = rate.find("{\"n_gen\": 32, \"avg_ts\": 9.25}\n{\"avg_ts\": 7}\n");
  ASSERT_TRUE(found.ok()) << found.error().line();
  EXPECT_DOUBLE_EQ(*found, 9.25);
}

TEST(RatePattern, AnchorsAreThoseOfLines) {
  EXPECT_DOUBLE_EQ(*pattern("^tg ([0-9.]+)$").find("pp 1\ntg 2.5\nend\n"), 2.5);
}

TEST(RatePattern, RefusesWhatIsNoExpressionOrHasNoGroup) {
  const auto broken = RatePattern::compile("rate ([0-9");
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error().line(), HasSubstr("--peer-rate: 'rate ([0-9' at "));
  const auto groupless = RatePattern::compile("rate [0-9]+");
  ASSERT_FALSE(groupless.ok());
  EXPECT_THAT(groupless.error().line(), HasSubstr("has no group"));
}

TEST(RatePattern, SaysWhatItFoundInsteadOfANumber) {
  EXPECT_EQ(pattern("x(1)").find("nothing").code(), Code::not_found);
  for (const char* output : {"rate nan", "rate -1", "rate 0", "rate 1.5x", "rate "}) {
    const auto found = pattern("rate (.*)").find(output);
    EXPECT_EQ(found.code(), Code::corrupt) << output;
  }
  EXPECT_EQ(pattern("a|rate (.*)").find("a").code(), Code::corrupt);
}

TEST(Peer, ItsRateComesFromEitherStream) {
  const auto run = run_peer("echo noise; echo 'rate 12.5' >&2", pattern("rate ([0-9.]+)"));
  ASSERT_TRUE(run.ok()) << run.error().line();
  EXPECT_DOUBLE_EQ(run->rate, 12.5);
  EXPECT_GT(run->seconds, 0);
}

TEST(Peer, FailureCarriesItsLastLines) {
  const auto run = run_peer("seq 1 30; exit 3", pattern("rate ([0-9.]+)"));
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.error().line(), HasSubstr("--peer: ended with status 3; its last lines:\n  21\n  22\n"));
  EXPECT_THAT(run.error().line(), HasSubstr("\n  30"));
  EXPECT_THAT(run.error().line(), Not(HasSubstr("  20\n")));
}

TEST(Peer, EndedBySignalIsSaid) {
  const auto run = run_peer("kill -9 $$", pattern("rate ([0-9.]+)"));
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.error().line(), HasSubstr("9"));
}

TEST(Peer, OutputWithoutARateIsShown) {
  const auto run = run_peer("echo something else", pattern("rate ([0-9.]+)"));
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().line(),
            "--peer-rate: does not match the peer's output; its last lines:\n  something else");
  EXPECT_THAT(run_peer("true", pattern("(1)")).error().line(), HasSubstr("printed nothing"));
}

}  // namespace
}  // namespace tierd
