#include "tools/lab/sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tierd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string refused_axes(const std::vector<std::string>& axes,
                         const std::vector<std::string>& overrides = {}) {
  const auto sweep = make_sweep(axes, "", overrides);
  EXPECT_FALSE(sweep.ok());
  return sweep.ok() ? "" : sweep.error().line();
}

TEST(SweepAxis, ValuesAsTheyAreWritten) {
  const auto axis = parse_axis("tiers.dram.capacity=5GB, 6 GB ,50%");
  ASSERT_TRUE(axis.ok()) << axis.error().line();
  EXPECT_EQ(axis->key, "tiers.dram.capacity");
  EXPECT_THAT(axis->values, ElementsAre("5GB", "6 GB", "50%"));
}

TEST(Sweep, TheFirstKeyVariesSlowest) {
  const auto sweep = make_sweep({"cache.name=lru,lfu", "cache.arena=10%,20%"}, "", {"run.threads=1"});
  ASSERT_TRUE(sweep.ok()) << sweep.error().line();
  std::vector<std::string> names;
  for (const SweepPoint& point : sweep->points) names.push_back(point_name(*sweep, point));
  EXPECT_THAT(names, ElementsAre("cache.name=lru, cache.arena=10%", "cache.name=lru, cache.arena=20%",
                                 "cache.name=lfu, cache.arena=10%", "cache.name=lfu, cache.arena=20%"));
  const SweepPoint& last = sweep->points.back();
  EXPECT_THAT(last.values, ElementsAre("lfu", "20%"));
  EXPECT_THAT(last.overrides, ElementsAre("run.threads=1", "cache.name=lfu", "cache.arena=20%"));
  EXPECT_EQ(last.config.cache.name, "lfu");
  EXPECT_EQ(last.config.threads, 1u);
}

TEST(Sweep, BadOnesAreRefused) {
  for (const char* text : {"cache.k", "=1,2", ""}) EXPECT_THAT(refused_axes({text}), HasSubstr("KEY=VALUE"));
  for (const char* text : {"cache.k=", "cache.k=1,,2", "cache.k=1,", "cache.k= "})
    EXPECT_THAT(refused_axes({text}), HasSubstr("an empty value"));
  EXPECT_THAT(refused_axes({"cache.k=1,2,1"}), HasSubstr("has 1 twice"));
  EXPECT_THAT(refused_axes({"cache.k=1", "cache.k=2"}), HasSubstr("'cache.k' is swept twice"));
  EXPECT_THAT(refused_axes({"a=1", "b=1", "c=1"}), HasSubstr("3 times, at most 2"));
  EXPECT_THAT(refused_axes({"cache.k=1"}, {"cache.k=2"}),
              HasSubstr("'cache.k' has a value by --set as well"));
  EXPECT_THAT(refused_axes({"run.thread=1,2"}), AllOf(StartsWith("--sweep: unknown key 'run.thread'"),
                                                      HasSubstr("did you mean 'run.threads'?")));
  EXPECT_THAT(refused_axes({"run.threads=1,two"}),
              AllOf(StartsWith("--sweep: "), HasSubstr("'run.threads' must be")));
}

}  // namespace
}  // namespace tierd
