#include "tools/lab/sweep/sweep_course.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Turns, PointsAreMeasuredInTurn) {
  std::vector<size_t> order;
  const auto errors = take_turns(3, 2, [&](size_t point) -> Status {
    order.push_back(point);
    return {};
  });
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_FALSE(errors[0] || errors[1] || errors[2]);
}

TEST(Turns, APointThatFailsIsLeftOut) {
  std::vector<size_t> order;
  const auto errors = take_turns(3, 3, [&](size_t point) -> Status {
    order.push_back(point);
    if (point == 1 && order.size() > 3) return Error{Code::io_error, "disk", "is full"};
    return {};
  });
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 0, 1, 2, 0, 2));
  EXPECT_FALSE(errors[0]);
  ASSERT_TRUE(errors[1]);
  EXPECT_EQ(errors[1]->line(), "disk: is full");
}

class SweepCourse : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cache_ = testing::TempDir() + "tier-sweep-cache-" + std::to_string(getpid());
    setenv("TIERD_CACHE", cache_.c_str(), 1);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }

  // The arguments of a resident decode. It takes a second, with the measurement of the machine.
  static SweepArguments arguments(const std::vector<std::string>& axes) {
    SweepArguments arguments;
    arguments.overrides = {"model.path=\"" TIERD_SOURCE_DIR
                           "/tests/golden/models/gguf-llama-q8_0/model-00001-of-00002.gguf\"",
                           "run.context=16", "run.threads=1", "run.bind=false"};
    arguments.tests = {{Workload::Kind::decode, 4}};
    arguments.rounds = 1;
    arguments.quiet = true;
    auto sweep = make_sweep(axes, "", arguments.overrides);
    EXPECT_TRUE(sweep.ok()) << sweep.error().line();
    if (sweep.ok()) arguments.sweep = std::move(*sweep);
    return arguments;
  }
  static inline std::string cache_;
};

TEST_F(SweepCourse, APointThatDoesNotFitIsARowAndTheOthersGoOn) {
  const SweepArguments given = arguments({"tiers.dram.capacity=1000,all"});
  ASSERT_TRUE(check_sweep(given).ok());
  const SweepFigures report = measure_sweep(given);
  ASSERT_EQ(report.points.size(), 2u);
  const PointFigures& small = report.points[0];
  EXPECT_THAT(small.error.value_or(""), HasSubstr("tiers.dram.capacity"));
  EXPECT_FALSE(small.run);
  EXPECT_TRUE(small.tests.empty());
  const PointFigures& all = report.points[1];
  EXPECT_FALSE(all.error);
  ASSERT_TRUE(all.run && report.run);
  EXPECT_EQ(all.values.at("tiers.dram.capacity"), "all");
  EXPECT_EQ(all.run->capacity, "all");
  ASSERT_EQ(all.tests.size(), 1u);
  EXPECT_EQ(all.tests[0].samples.size(), 1u);
  const HeldFigures& held = all.tests[0].memory;
  EXPECT_GE(held.weight_bytes, static_cast<double>(all.run->tensor_bytes.value_or(0)));
  EXPECT_LE(held.weight_bytes, held.bytes);
  EXPECT_EQ(report.run->set, given.overrides);
}

TEST_F(SweepCourse, WhatPointsDoNotShareIsNull) {
  const SweepArguments given = arguments({"cache.name=pinned,lru"});
  const SweepFigures report = measure_sweep(given);
  ASSERT_TRUE(report.run);
  EXPECT_FALSE(report.run->cache);
  EXPECT_EQ(report.run->predictor, "dense");
  EXPECT_EQ(report.points[0].run->cache, "pinned");
  EXPECT_EQ(report.points[1].run->cache, "lru");
}

TEST_F(SweepCourse, WhatAPluginDoesNotTakeIsFoundBefore) {
  const auto refusal = [](const std::vector<std::string>& axes) {
    const Status status = check_sweep(arguments(axes));
    EXPECT_FALSE(status.ok());
    return status.ok() ? "" : status.error().line();
  };
  EXPECT_THAT(refusal({"cache.name=pinned,lfru"}), HasSubstr("lfru"));
  const std::string unknown = refusal({"cache.name=residency-window", "cache.kk=1,2"});
  EXPECT_THAT(unknown, StartsWith("--sweep"));
  EXPECT_THAT(unknown, HasSubstr("no parameter 'kk'; did you mean 'k'?"));
  EXPECT_THAT(refusal({"tiers.dram.capacity=50%,plenty"}), HasSubstr("plenty"));
  EXPECT_THAT(refusal({"model.tokenizer=/nowhere/t.json"}), HasSubstr("/nowhere/t.json"));
}

}  // namespace
}  // namespace tierd
