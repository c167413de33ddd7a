// M2Cache's three memories under faults: layers are preloaded into DRAM and neurons of several editions move
// from there to a GPU, while the disk fails or the budget changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/bad_place_device.h"
#include "tests/e2e/gpu_above.h"
#include "tests/e2e/mixed_store.h"

namespace tierd {
namespace {

using testing::HasSubstr;

class Preloading : public testing::Test {
 protected:
  void SetUp() override {
    const Golden golden = read_golden("llama2-f16");
    tokens_ = golden.tokens;
    Config resident = store_of_editions("llama2-f16", folder_.path() + "/editions", Layout::neuron,
                                        {Encoding::q8_0, Encoding::q4_0});
    use_random_ranks(resident);
    mix(resident, "25/25/50");
    ASSERT_FALSE(HasFailure());
    const auto logits = run_all_logits(resident, tokens_, 1);
    ASSERT_TRUE(logits.ok()) << logits.error().line();
    expected_ = *logits;

    config_ = resident;
    use_gpu(config_, "60%");
    config_.tier("gpu").cache.name = "atu";
    config_.tier("dram").compute = false;
    config_.tier("dram").capacity = "40%";
    config_.tier("dram").staging = "40%";
    config_.tier("dram").cache.name = "layers";
  }

  // Returns a runtime that reads through a device with this bad place.
  std::unique_ptr<Runtime> start(BadPlace& place) const {
    RuntimeOptions options;
    options.quiet = true;
    options.fit = true;
    options.logit_rows = 1;
    options.open_device = [&place](const std::string& path,
                                   const DeviceOptions& device) -> Result<std::unique_ptr<BlockDevice>> {
      TIERD_ASSIGN(std::unique_ptr<BlockDevice> inner, open_device(path, device));
      return std::unique_ptr<BlockDevice>(std::make_unique<BadPlaceDevice>(std::move(inner), place));
    };
    auto runtime = make_runtime(config_, options);
    EXPECT_TRUE(runtime.ok()) << runtime.error().line();
    return runtime.ok() ? std::move(*runtime) : nullptr;
  }
  Status feed_one(Runtime& runtime, uint32_t token, std::vector<float>& logits) const {
    return feed(runtime.engine(), tokens_, token, 1, logits);
  }
  static void spoil_everything(BadPlace& place, BadRead kind, uint32_t times) {
    place = {kind, 0, UINT64_MAX, times};
  }

  Config config_;
  std::vector<uint32_t> tokens_;
  std::vector<float> expected_;

 private:
  TempFolder folder_;
};

// The next read fails once or twice. The preload or the pass reads again.
TEST_F(Preloading, OutlivesReadsThatFail) {
  uint64_t failed_ahead = 0;
  for (const BadRead kind : {BadRead::io_error, BadRead::invalid, BadRead::flipped_bit}) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(seed);
      Random random(seed);
      BadPlace place;
      const std::unique_ptr<Runtime> runtime = start(place);
      ASSERT_TRUE(runtime && runtime->load().ok());
      std::vector<float> logits;
      for (uint32_t token = 0; token < tokens_.size(); ++token) {
        if (random.below(3) == 0) spoil_everything(place, kind, 1 + random.below(2));
        const Status fed = feed_one(*runtime, token, logits);
        ASSERT_TRUE(fed.ok()) << fed.error().line();
      }
      ASSERT_TRUE(runtime->engine().drain().ok());
      EXPECT_EQ(runtime->dispatcher().in_flight(), 0U);
      expect_the_same_bits(logits, expected_);
      failed_ahead += runtime->scheduler().counters().prefetch_failed;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(failed_ahead, 0U);
}

// A disk that fails for good ends the step with an error that names the place in the store. Once the disk
// works again, the step succeeds, and so do all later ones.
TEST_F(Preloading, EndsOneStepWhereTheDiskFailsForGood) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    BadPlace place;
    const std::unique_ptr<Runtime> runtime = start(place);
    ASSERT_TRUE(runtime && runtime->load().ok());
    const uint32_t when = random.below(static_cast<uint32_t>(tokens_.size()) - 2);
    std::vector<float> logits;
    uint32_t failed = 0;
    for (uint32_t token = 0; token < tokens_.size(); ++token) {
      if (token == when) spoil_everything(place, BadRead::io_error, BadPlace::kForever);
      Status fed = feed_one(*runtime, token, logits);
      if (!fed.ok()) {
        ++failed;
        EXPECT_EQ(fed.code(), Code::io_error);
        EXPECT_THAT(fed.error().line(), HasSubstr("/editions/"));
        EXPECT_THAT(fed.error().line(), HasSubstr("read failed after 3 attempts: Input/output error"));
        place.times = 0;
        fed = feed_one(*runtime, token, logits);
      }
      ASSERT_TRUE(fed.ok()) << fed.error().line();
    }
    EXPECT_EQ(failed, 1U);
    ASSERT_TRUE(runtime->engine().drain().ok());
    EXPECT_EQ(runtime->dispatcher().in_flight(), 0U);
    expect_the_same_bits(logits, expected_);
    if (HasFailure()) return;
  }
}

// DRAM shrinks and grows between steps while layers are in flight to it.
TEST_F(Preloading, LosesNoBitWhereTheBudgetMoves) {
  const std::map<uint32_t, const char*> budgets = {{2, "30%"}, {4, "70%"},  {6, "1"},
                                                   {9, "all"}, {11, "35%"}, {13, "50%"}};
  BadPlace none;
  const std::unique_ptr<Runtime> runtime = start(none);
  ASSERT_TRUE(runtime && runtime->load().ok());
  std::vector<float> logits;
  for (uint32_t token = 0; token < tokens_.size(); ++token) {
    if (const auto budget = budgets.find(token); budget != budgets.end()) {
      const Status changed = runtime->set_capacity(budget->second, true, 0);
      ASSERT_TRUE(changed.ok()) << budget->second << ": " << changed.error().line();
      EXPECT_LE(runtime->budget().used(), runtime->budget().capacity());
    }
    const Status fed = feed_one(*runtime, token, logits);
    ASSERT_TRUE(fed.ok()) << fed.error().line();
  }
  ASSERT_TRUE(runtime->engine().drain().ok());
  EXPECT_EQ(runtime->dispatcher().in_flight(), 0U);
  EXPECT_EQ(runtime->budget_changes().size(), budgets.size());
  expect_the_same_bits(logits, expected_);
}

}  // namespace
}  // namespace tierd
