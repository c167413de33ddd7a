// A drawn trace has the statistics of its process, and the other commands accept it like a run's.
#include "tools/lab/activity/draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/file.h"
#include "core/watch/trace/what_if.h"
#include "tests/base/temp_folder.h"
#include "tests/tier/trace/recorded_run.h"
#include "tools/lab/activity/activity.h"
#include "tools/lab/activity/closed_forms.h"
#include "tools/lab/activity/sticky_activity.h"

namespace tierd {
namespace {

using testing::HasSubstr;

// 12 layers of 3072 neurons.
constexpr const char* kShape = "opt-125m";

class DrawnTraces : public testing::Test {
 protected:
  std::string path(const std::string& name = "drawn.trace") const { return folder_.path() + "/" + name; }
  TraceReader drawn(const DrawOptions& options) const {
    const Status written = write_drawn(options, path());
    EXPECT_TRUE(written.ok()) << written.error().line();
    auto trace = TraceReader::open(path());
    EXPECT_TRUE(trace.ok()) << trace.error().line();
    return std::move(*trace);
  }
  const TempFolder folder_;
};

TEST_F(DrawnTraces, HaveWhatIsDrawn) {
  const DrawOptions options = {
      .profile = "llm-in-a-flash", .shape = kShape, .tokens = 5, .seed = 3, .text = 2, .by_depth = true};
  TraceReader trace = drawn(options);
  EXPECT_EQ(trace.header().facts.at("drawn"), "llm-in-a-flash");
  const auto sites = read_activity(trace, false);
  ASSERT_TRUE(sites.ok()) << sites.error().line();
  EXPECT_TRUE(trace.whole());
  ASSERT_EQ(sites->size(), 12u);
  EXPECT_EQ(sites->at(7).name, "layers.7.ffn");
  const auto profile = read_activity_profile(options.profile);
  auto activity = StickyActivity::create(
      *profile, {.neurons = std::vector<uint32_t>(12, 3072), .seed = 3, .first_text = 2, .by_depth = true});
  for (uint32_t t = 0; t < options.tokens; ++t) {
    activity->next_token(0);
    for (uint32_t l = 0; l < 12; ++l)
      EXPECT_EQ(sites->at(l).tokens[t], list_active(activity->active(0, l))) << l;
  }
  EXPECT_FALSE(std::filesystem::exists(path() + ".partial"));
  // A second drawing gives the same bytes.
  const std::string bytes = *read_whole_file(path(), 1 << 24);
  ASSERT_TRUE(write_drawn(options, path("again.trace")).ok());
  EXPECT_EQ(*read_whole_file(path("again.trace"), 1 << 24), bytes);
}

// Checks means over 12 layers of different rates; statistics_test.cc checks the precision of closed forms.
TEST_F(DrawnTraces, AreToldByActivity) {
  TraceReader trace = drawn({.profile = "llm-in-a-flash", .shape = kShape, .tokens = 60});
  const auto sites = read_activity(trace, false);
  ASSERT_TRUE(sites.ok()) << sites.error().line();
  double held = 0, fresh = 0, overlap = 0;
  for (const SiteActivity& site : *sites) {
    const WindowShares shares = window_shares(site, 4, 16);
    held += shares.held[3] / 12;
    fresh += shares.fresh[3] / 12;
    overlap += overlap_with_previous(site, 16) / 12;
  }
  const BetaRates rates = read_activity_profile("llm-in-a-flash")->rates;
  EXPECT_NEAR(held, used_within(rates, 0.16, 5), 0.01);
  EXPECT_NEAR(fresh, new_in_token(rates, 0.16, 4), 0.001);
  EXPECT_NEAR(overlap, overlap_after(rates, 0.16, 1), 0.02);
}

// Caches are consulted as in any run. ActiveFlow's profile uses half of the channels, and half of all fit the
// arena: a cache of the channels with the greatest rates would miss 37 % of the uses, one without knowledge
// 50 %.
TEST_F(DrawnTraces, CachesAreAsked) {
  constexpr uint32_t kTokens = 100;
  TraceReader trace = drawn({.profile = "activeflow", .shape = kShape, .tokens = kTokens});
  const auto asked = read_asked(trace);
  ASSERT_TRUE(asked.ok()) << asked.error().line();
  TraceHeader header = trace.header();
  const auto hit_rate = [&](const char* cache, uint64_t arena_bytes) {
    header.cache = StrategyConfig{cache};
    const auto choices = choose_recorded(header, choose());
    EXPECT_TRUE(choices.ok());
    const auto result = what_if(header, *asked, *choices, arena_bytes);
    EXPECT_TRUE(result.ok()) << result.error().line();
    EXPECT_EQ(result->decode_steps, kTokens);
    const SchedulerCounters& c = result->counters;
    return static_cast<double>(c.hits) / static_cast<double>(c.hits + c.staged + c.misses);
  };
  const uint64_t half = header.arena_bytes() / 2;
  const double lfu = hit_rate("lfu", half);
  const BetaRates rates = read_activity_profile("activeflow")->rates;
  EXPECT_LT(lfu, share_of_hottest(rates, 0.5));
  EXPECT_GT(lfu, 0.5);
  EXPECT_GT(lfu, hit_rate("fifo", half));
  EXPECT_EQ(hit_rate("none", half), 0);
}

TEST_F(DrawnTraces, ErrorsSayWhatIsWrong) {
  const auto refused = [&](const DrawOptions& options, const std::string& path) {
    const Status written = write_drawn(options, path);
    return written.ok() ? "drawn" : written.error().line();
  };
  EXPECT_THAT(refused({.profile = "opt", .shape = kShape, .tokens = 1}, path()),
              HasSubstr("no such activity profile; known are activeflow"));
  EXPECT_THAT(refused({.profile = "m2cache", .shape = "opt", .tokens = 1}, path()), HasSubstr("opt"));
  EXPECT_THAT(refused({.profile = "m2cache", .shape = "mixtral-8x7b", .tokens = 1}, path()),
              HasSubstr("is a mixture"));
  EXPECT_THAT(refused({.profile = "m2cache", .shape = kShape, .tokens = 1, .by_depth = true}, path()),
              HasSubstr("has no table [depth]"));
  EXPECT_THAT(refused({.profile = "m2cache", .shape = kShape, .tokens = 1}, path("no/folder")),
              HasSubstr("cannot be written"));
  // A folder in place of the file: no partial file stays.
  std::filesystem::create_directories(path("taken") + "/full");
  EXPECT_NE(refused({.profile = "m2cache", .shape = kShape, .tokens = 1}, path("taken")), "drawn");
  EXPECT_FALSE(std::filesystem::exists(path("taken") + ".partial"));
}

}  // namespace
}  // namespace tierd
