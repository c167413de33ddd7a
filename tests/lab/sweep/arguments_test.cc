#include "tools/lab/sweep/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tierd {
namespace {

using testing::HasSubstr;

ParsedSweep parse(std::vector<std::string> words) {
  words.insert(words.begin(), "tier-sweep");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse_sweep_arguments(static_cast<int>(words.size()), argv.data());
}

// Returns the one line with which `words` are refused.
std::string refused_arguments(std::vector<std::string> words) {
  testing::internal::CaptureStderr();
  const ParsedSweep parsed = parse(std::move(words));
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(parsed.exit_code, 2) << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  return line;
}

TEST(SweepArguments, FlagsHoldAtEveryPointOfASweep) {
  const ParsedSweep parsed =
      parse({"-m", "x", "-n", "8", "-p", "0", "-t", "2", "--sweep", "cache.k=1,2", "--sweep",
             "tiers.dram.capacity=50%,75%", "--set", "cache.name=residency-window"});
  ASSERT_FALSE(parsed.exit_code);
  ASSERT_EQ(parsed.arguments.sweep.points.size(), 4u);
  for (const SweepPoint& point : parsed.arguments.sweep.points) {
    EXPECT_EQ(point.config.model, "x");
    EXPECT_EQ(point.config.threads, 2u);
    EXPECT_EQ(point.config.context, 8u);
    EXPECT_EQ(point.config.cache.name, "residency-window");
  }
  EXPECT_EQ(parsed.arguments.sweep.points[1].config.find_tier("dram")->capacity, "75%");
}

TEST(SweepArguments, SweepsThatSayTwoThingsAreRefused) {
  EXPECT_THAT(refused_arguments({"-m", "x", "--sweep", "cache.k"}), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(refused_arguments({"-m", "x", "--sweep", "run.thread=1"}),
              HasSubstr("did you mean 'run.threads'?"));
  EXPECT_THAT(refused_arguments({"-m", "x", "--sweep", "run.threads=1,2", "-t", "2"}),
              HasSubstr("has a value by -t"));
  EXPECT_THAT(refused_arguments({"-m", "x", "--sweep", "model.path=a,b"}), HasSubstr("has a value by -m"));
  EXPECT_THAT(refused_arguments({"-m", "x", "--sweep", "cache.k=1", "--peer", "true", "--peer-rate", "(1)"}),
              HasSubstr("--peer"));
  EXPECT_THAT(refused_arguments({"-m", "x", "--sweep", "run.context=16,64", "-p", "32"}),
              HasSubstr("do not fit a context of 16"));
  EXPECT_THAT(refused_arguments({"-m", "x", "--plot", "a.gp"}), HasSubstr("--sweep is required"));
  EXPECT_THAT(refused_arguments({"-m", "x", "--sweep", "cache.k=1", "--plot", "a.jpg"}), HasSubstr("a.jpg"));
}

}  // namespace
}  // namespace tierd
