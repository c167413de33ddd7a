// Plays runs of shapes with drawn activity, and compares their figures with arithmetic.
#include "tools/lab/reproduce/played_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/lab/activity/closed_forms.h"
#include "tools/lab/activity/profile.h"

namespace tierd {
namespace {

using testing::HasSubstr;

// A model of 125M parameters: 12 layers of 768 x 3072, bundles of 3 KiB in f16.
DescribedRun flash() {
  DescribedRun run;
  run.name = "flash";
  run.configuration = "llm-in-a-flash";
  run.model = "opt-125m";
  run.machine = "m1-max";
  run.activity = "llm-in-a-flash";
  run.warming = 8;
  run.tokens = 40;
  run.settings = {"tiers.dram.capacity=1 GB", "tiers.flash.gap=0", "tiers.flash.max_read=4 KiB",
                  "run.seed=3"};
  return run;
}

TEST(PlayedRun, ReadsWhatIsNewInAToken) {
  const auto figures = play_run(flash());
  ASSERT_TRUE(figures.ok()) << figures.error().line();
  const auto profile = read_activity_profile("llm-in-a-flash");
  ASSERT_TRUE(profile.ok());
  const double news = new_in_token(profile->rates, profile->lambda, 4);
  const double bytes = 12 * 3072 * news * 3072;
  EXPECT_NEAR(figures->at("flash>dram_gb"), bytes * 1e-9, bytes * 1e-9 * 0.1);
  EXPECT_GT(figures->at("flash>dram_ms"), 0);
  EXPECT_GT(figures->at("step_ms"), figures->at("flash>dram_ms"));
  EXPECT_NEAR(figures->at("loaded_percent"), 100 * news / mean_rate(profile->rates), 4);
}

TEST(PlayedRun, IsTheSameEveryTime) {
  EXPECT_EQ(*play_run(flash()), *play_run(flash()));
  DescribedRun other = flash();
  other.settings.back() = "run.seed=4";
  EXPECT_NE(*play_run(flash()), *play_run(other));
}

TEST(PlayedRun, ReadsEverythingWhereNothingStays) {
  DescribedRun run = flash();
  run.configuration = "ablation/flash-1";
  run.activity.clear();
  run.settings = {"tiers.dram.capacity=60 MB"};
  const auto figures = play_run(run);
  ASSERT_TRUE(figures.ok()) << figures.error().line();
  EXPECT_NEAR(figures->at("flash>dram_gb"), figures->at("store_gb"), 0.03 * figures->at("store_gb"))
      << "positions and biases stay";
  EXPECT_NEAR(figures->at("flash>dram_ms"), figures->at("store_gb") / 6.1 * 1e3, 3);
}

TEST(PlayedRun, HalfOfTheWeightsAreZeros) {
  DescribedRun run = flash();
  run.configuration = "endor";
  run.activity.clear();
  run.machine = "rtx4080-box";
  run.settings = {"tiers.gpu.capacity=1 GB", "tiers.dram.capacity=1 GB"};
  const auto dense = play_run(run);
  ASSERT_TRUE(dense.ok()) << dense.error().line();
  run.settings.emplace_back("model.zeros=50");
  const auto pruned = play_run(run);
  ASSERT_TRUE(pruned.ok()) << pruned.error().line();
  // Compares all weights but the embedding, which is not pruned.
  const double embedding = 50272 * 768 * 2e-9;
  EXPECT_NEAR((pruned->at("store_gb") - embedding) / (dense->at("store_gb") - embedding), 0.5625, 0.02);
}

TEST(PlayedRun, TellsTextsFromTheirPrompts) {
  DescribedRun run = flash();
  run.prompt = 16;
  run.text = 100;
  const auto figures = play_run(run);
  ASSERT_TRUE(figures.ok()) << figures.error().line();
  const double prompt = figures->at("prompt_ms"), text = 100 * figures->at("step_ms");
  EXPECT_GT(prompt, 0);
  EXPECT_NEAR(figures->at("prompt_percent"), 100 * prompt / (prompt + text), 1e-9);
  EXPECT_NEAR(figures->at("text_tokens_per_second"), 1e5 / (prompt + text), 1e-9);
}

// A model of 12 layers of 768 x 3072; the GPU has room for a tenth of the neurons.
DescribedRun hermes(const char* configuration) {
  DescribedRun run;
  run.name = "hermes";
  run.configuration = configuration;
  run.model = "opt-125m";
  run.machine = "rtx4090-8ndp";
  run.activity = "hermes-llama-13b";
  run.warming = 1;
  run.tokens = 12;
  run.settings = {"tiers.gpu.capacity=180 MB", "tiers.ndp.capacity=8 GB", "tiers.dram.capacity=1 GB",
                  "run.seed=3"};
  return run;
}

TEST(PlayedRun, HasAPartitionByOtherTexts) {
  DescribedRun run = hermes("ablation/hermes-partition");
  const auto drawn = play_run(run);
  ASSERT_TRUE(drawn.ok()) << drawn.error().line();
  run.partition = 4;
  const auto divided = play_run(run);
  ASSERT_TRUE(divided.ok()) << divided.error().line();
  EXPECT_LT(divided->at("step_ms"), drawn->at("step_ms"));
  EXPECT_NEAR(divided->at("gpu_percent"), drawn->at("gpu_percent"), 1) << "as many neurons, and hotter ones";
  EXPECT_EQ(*play_run(run), *divided);
}

TEST(PlayedRun, SaysWhyThereIsNoPartition) {
  DescribedRun run = flash();
  run.partition = 4;
  EXPECT_THAT(play_run(run).error().line(), HasSubstr("describes no GPU as units.gpu"));
  run = hermes("ablation/hermes-partition");
  run.partition = 4;
  run.activity.clear();
  EXPECT_THAT(play_run(run).error().line(), HasSubstr("no activity that could be drawn"));
}

TEST(PlayedRun, SaysWhichRunIsWrong) {
  DescribedRun run = flash();
  run.model = "atlantis";
  EXPECT_THAT(play_run(run).error().line(), HasSubstr("runs.flash: "));
  run = flash();
  run.activity = "atlantis";
  EXPECT_THAT(play_run(run).error().line(), HasSubstr("hermes-falcon-40b"));
  run = flash();
  run.configuration = "naive";
  EXPECT_THAT(play_run(run).error().line(),
              HasSubstr("activity: layout 'row' has no neurons that could be inactive"));
}

}  // namespace
}  // namespace tierd
