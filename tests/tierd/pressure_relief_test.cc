// Runs with memory pressure that the test sets, on a clock that the test advances.
#include "tools/tierd/pressure_relief.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/e2e/golden_model.h"

namespace tierd {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSecond = 1'000'000'000;

struct ToldPressure final : PressureSource {
  explicit ToldPressure(const bool& is) : pressed_now(is) {}
  bool pressed() override { return pressed_now; }
  const bool& pressed_now;
};

class Pressure : public testing::Test {
 protected:
  static void SetUpTestSuite() { cache_ = use_test_cache(); }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }

  void SetUp() override {
    config_.model = TIERD_SOURCE_DIR "/configs/models/demo";
    config_.threads = 1;
    config_.bind = false;
    config_.context = 32;
    config_.tier("dram").capacity = "60%";
    config_.tier("dram").staging = "256 KiB";
    config_.cache.name = "lru";
  }
  Runtime& start() {
    RuntimeOptions options;
    options.quiet = true;
    auto made = make_runtime(config_, options);
    EXPECT_TRUE(made.ok()) << made.error().line();
    runtime_ = std::move(*made);
    EXPECT_TRUE(runtime_->load().ok());
    return *runtime_;
  }
  // Steps of a tenth of the budget beyond the least, at most one a second; up again after ten seconds.
  PressureRelief& watch(uint64_t least_bytes = 0) {
    step_ = (capacity() - runtime_->least_capacity()) / 10;
    relief_ = std::make_unique<PressureRelief>(
        *runtime_, std::make_unique<ToldPressure>(short_),
        PressureRelief::Options{step_, least_bytes, kSecond, 10 * kSecond, true});
    return *relief_;
  }
  uint64_t capacity() const { return runtime_->budget().capacity(); }
  // Returns the error line of the run, or else that of the relief.
  std::string refusal() {
    RuntimeOptions options;
    options.quiet = true;
    if (const auto run = make_runtime(config_, options); !run.ok()) return run.error().line();
    const auto made = PressureRelief::create(start(), true);
    return made.ok() ? "" : made.error().line();
  }

  Config config_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<PressureRelief> relief_;
  bool short_ = false;
  uint64_t step_ = 0;
  static inline std::string cache_;
};

TEST_F(Pressure, ShrinksByStepsAndGrowsAgainWhenItIsOver) {
  start();
  const uint64_t at_start = capacity();
  PressureRelief& relief = watch();
  relief.look(kSecond);
  EXPECT_EQ(capacity(), at_start);
  short_ = true;
  relief.look(2 * kSecond);
  EXPECT_EQ(capacity(), at_start - step_);
  relief.look(2 * kSecond + kSecond / 2);  // the first step must show its effect before the next
  EXPECT_EQ(capacity(), at_start - step_);
  relief.look(3 * kSecond);
  EXPECT_EQ(capacity(), at_start - 2 * step_);
  EXPECT_LE(runtime_->budget().used(), capacity());
  short_ = false;
  relief.look(12 * kSecond);
  EXPECT_EQ(capacity(), at_start - 2 * step_);
  relief.look(13 * kSecond);
  EXPECT_EQ(capacity(), at_start - step_);
  relief.look(22 * kSecond);
  EXPECT_EQ(capacity(), at_start - step_);
  relief.look(23 * kSecond);
  EXPECT_EQ(capacity(), at_start);
  relief.look(99 * kSecond);
  EXPECT_EQ(capacity(), at_start);
  EXPECT_EQ(relief.counts().shrinks, 2u);
  EXPECT_EQ(relief.counts().grows, 2u);
}

TEST_F(Pressure, NeverBelowTheLeast) {
  start();
  const uint64_t least = capacity() - 3 * ((capacity() - runtime_->least_capacity()) / 10) / 2;
  PressureRelief& relief = watch(least);
  short_ = true;
  for (uint64_t second = 1; second < 6; ++second) relief.look(second * kSecond);
  EXPECT_EQ(capacity(), least);
  EXPECT_EQ(relief.counts().shrinks, 2u);
  EXPECT_EQ(runtime_->budget_changes().size(), 2u);
}

TEST_F(Pressure, NorBelowWhatIsInUse) {
  start();
  PressureRelief& relief = watch();
  short_ = true;
  for (uint64_t second = 1; second < 20; ++second) relief.look(second * kSecond);
  EXPECT_EQ(capacity(), runtime_->least_capacity());
  EXPECT_EQ(runtime_->budget_changes().size(), relief.counts().shrinks);
}

// Also where the new capacity equals the one that pressure has caused.
TEST_F(Pressure, GrowsNoFurtherThanSomebodyHasSetSince) {
  start();
  PressureRelief& relief = watch();
  short_ = true;
  relief.look(kSecond);
  const uint64_t pressed = capacity();
  ASSERT_TRUE(runtime_->set_capacity(std::to_string(pressed), false).ok());
  short_ = false;
  relief.look(50 * kSecond);
  EXPECT_EQ(capacity(), pressed);
  EXPECT_EQ(relief.counts().grows, 0u);
}

TEST_F(Pressure, LosesNoBit) {
  const auto run = [&](const std::function<void(uint32_t)>& between) {
    Runtime& runtime = start();
    std::vector<uint32_t> tokens;
    for (uint32_t i = 0; i < 24; ++i) tokens.push_back(i * 37 % runtime.engine().vocab_size());
    std::vector<float> logits;
    for (uint32_t i = 0; i < tokens.size(); ++i) {
      between(i);
      const Status fed = feed(runtime.engine(), tokens, i, 1, logits);
      EXPECT_TRUE(fed.ok()) << fed.error().line();
    }
    EXPECT_TRUE(runtime.engine().drain().ok());
    return logits;
  };
  const std::vector<float> whole = run([](uint32_t) {});
  const std::vector<float> disturbed = run([&](uint32_t token) {
    if (token == 0) watch();
    short_ = token % 12 < 6;
    relief_->look((token + 1) * 11 * kSecond);
  });
  EXPECT_EQ(disturbed, whole);
  EXPECT_GE(relief_->counts().shrinks, 10u);
  EXPECT_GE(relief_->counts().grows, 6u);
}

TEST_F(Pressure, IsOffUnlessAskedFor) {
  const auto made = PressureRelief::create(start(), true);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(*made, nullptr);
}

TEST_F(Pressure, WhatCannotBeIsOneLine) {
  config_.pressure.source = "psi";
  const Config sound = config_;
  config_.pressure.window_ms = 499;
  EXPECT_EQ(refusal(), "pressure.window_ms: 499, expected 500 to 10000");
  config_ = sound;
  config_.pressure.stall_ms = 2001;
  EXPECT_EQ(refusal(), "pressure.stall_ms: 2001, expected 1 to 2000");
  config_ = sound;
  config_.pressure.limit_percent = 100;
  EXPECT_EQ(refusal(), "pressure.limit_percent: 100, expected 1 to 99");
  config_ = sound;
  config_.pressure.calm_ms = 0;
  EXPECT_EQ(refusal(), "pressure.calm_ms: 0, expected 1 to 86400000");
  config_ = sound;
  config_.pressure.step = "0";
  EXPECT_EQ(refusal(), "pressure.step: is 0 bytes, expected more");
  config_.pressure.step = "some";
  EXPECT_THAT(refusal(), HasSubstr("pressure.step: "));
  config_ = sound;
  config_.pressure.least = "60%";
  EXPECT_THAT(refusal(), HasSubstr("leave no room to shrink"));
  config_ = sound;
  config_.cache.name = "none";
  EXPECT_THAT(refusal(), HasSubstr("cache 'none': cannot change its size"));
}

}  // namespace
}  // namespace tierd
