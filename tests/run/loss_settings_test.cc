#include "core/run/loss_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/base/temp_folder.h"

namespace tierd {
namespace {

const std::string kDemo = TIERD_SOURCE_DIR "/configs/models/demo";
const std::string kTables = kDemo + "/predictor-r64.safetensors";

class LossSettingsOf : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TIERD_CACHE", folder_.path().c_str(), 1);
    setenv("TIERD_PLUGIN_PATH", TIERD_PLUGIN_DIR, 1);
  }
  void TearDown() override { unsetenv("TIERD_PLUGIN_PATH"); }

  struct Known {
    bool lossy = false;
    LossSettings settings;
  };
  static Known of(const std::string& configuration, std::vector<std::string> set = {},
                  uint32_t measure_every = 0) {
    set.push_back("model.path=" + kDemo);
    const auto config = load_config(TIERD_SOURCE_DIR "/configs/" + configuration + ".toml", set);
    EXPECT_TRUE(config.ok()) << config.error().line();
    RuntimeOptions options;
    options.quiet = true;
    options.fit = true;
    const auto plan = plan_run(*config, options);
    EXPECT_TRUE(plan.ok()) << plan.error().line();
    if (!plan.ok()) return {};
    const auto settings = loss_settings(*plan, measure_every);
    EXPECT_TRUE(settings.ok()) << settings.error().line();
    return {is_lossy(*plan), *settings};
  }
  static std::string text(const std::string& configuration, const std::vector<std::string>& set = {}) {
    return of(configuration, set).settings.text;
  }
  const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
};

TEST_F(LossSettingsOf, LosslessConfigurationsAreNotLossy) {
  for (const char* name : {"resident", "naive", "hybrid", "accelerate", "flexgen", "hermes", "hermes-base"})
    EXPECT_FALSE(of(name).lossy) << name;
  EXPECT_TRUE(of("activeflow").lossy);
  EXPECT_TRUE(of("papers/activeflow").lossy);
  EXPECT_TRUE(of("papers/hermes").lossy);
  EXPECT_TRUE(of("llm-in-a-flash", {"predictor.tensors=" + kTables}).lossy);
  EXPECT_TRUE(of("hybrid", {"model.encoding=q4_0"}).lossy) << "encoded anew";
}

TEST_F(LossSettingsOf, WhatChangesNoResultIsLeftOut) {
  const std::string as_shipped = text("papers/activeflow");
  for (const char* set :
       {"run.threads=3", "run.context=100", "run.seed=5", "run.bind=false", "cache.name=lru",
        "predictor.ahead=none", "tiers.dram.capacity=30%", "tiers.flash.gap=0", "predictor.sparsity=0.5",
        "compute.kernels=scalar", "scheduler.measure_every=4"})
    EXPECT_EQ(text("papers/activeflow", {set}), as_shipped) << set;
  EXPECT_TRUE(of("papers/activeflow").settings.resident.empty());
}

TEST_F(LossSettingsOf, WhatChangesResultsIsInIt) {
  const std::string as_shipped = text("papers/activeflow");
  for (const char* set : {"predictor.sparsity=0.6", "predictor.mask=cache-aware",
                          "predictor.allocation=measured", "run.kv=f32", "predictor.name=random"})
    EXPECT_NE(text("papers/activeflow", {set}), as_shipped) << set;
  const std::vector<std::string> tables = {"predictor.tensors=" + kTables};
  const auto m2cache = [&](const std::string& set) { return text("papers/m2cache", {tables.front(), set}); };
  EXPECT_NE(m2cache("quantizer.margin=0.3"), m2cache("quantizer.margin=0"));
}

// A file of the same content under another name counts as the same tables; other content does not.
TEST_F(LossSettingsOf, TablesGoByTheirContent) {
  const std::string copy = folder().path() + "/copy.safetensors";
  std::filesystem::copy_file(kTables, copy);
  const auto with = [](const std::string& tables) {
    return text("llm-in-a-flash", {"predictor.tensors=" + tables});
  };
  EXPECT_EQ(with(kTables), with(copy));
  EXPECT_NE(with(kTables), with(kDemo + "/predictor-r32.safetensors"));
}

TEST_F(LossSettingsOf, MemoriesCountWhereResultsDependOnThem) {
  const auto half = of("activeflow", {"tiers.dram.capacity=60%"}).settings;
  const auto more = of("activeflow", {"tiers.dram.capacity=80%"}).settings;
  EXPECT_EQ(half.text, more.text);
  ASSERT_EQ(half.resident.size(), 1u);
  EXPECT_LT(half.resident.at("dram") + 0.1, more.resident.at("dram"));
  EXPECT_NE(text("activeflow", {"cache.name=lru"}), half.text) << "what is resident is used";
  EXPECT_EQ(of("papers/m2cache", {"predictor.tensors=" + kTables}).settings.resident.size(), 2u);
}

// Measured passes teach the table of states, so they change its results.
TEST_F(LossSettingsOf, MeasuringCountsWhereThePredictorLearnsFromIt) {
  EXPECT_NE(of("papers/hermes", {}, 1).settings.text, of("papers/hermes", {}, 0).settings.text);
  EXPECT_EQ(of("papers/activeflow", {}, 1).settings.text, of("papers/activeflow", {}, 0).settings.text);
}

}  // namespace
}  // namespace tierd
