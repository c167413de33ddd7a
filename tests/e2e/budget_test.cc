// Changes the budget while tokens are generated: every token stays the same, and resident weights never
// exceed the budget.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/e2e/golden_model.h"

namespace tierd {
namespace {

using testing::HasSubstr;

const std::vector<uint32_t> kTokens = {1, 17, 250, 33, 33, 299, 4, 90, 12, 61, 7, 8, 200, 31, 5, 5, 77, 270};
constexpr uint32_t kPrompt = 4;
const std::string kDemo = TIERD_SOURCE_DIR "/configs/models/demo";

// Counts the slots that moves carry.
class Moves final : public SilentObserver {
 public:
  void posted(const Message& message, const Payload&) override {
    if (message.op == Op::move) slots += message.n_units;
  }
  uint64_t slots = 0;
};

class MovingBudget : public testing::Test {
 protected:
  static void SetUpTestSuite() { cache_ = use_test_cache(); }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }

  static Config config(const std::string& cache, const std::string& layout, uint32_t units) {
    Config config;
    config.model = kDemo;
    config.layout = layout;
    config.threads = 1;
    config.bind = false;
    config.context = 32;
    config.tier("dram").capacity = "60%";
    config.tier("dram").staging = "256 KiB";
    config.cache.name = cache;
    config.tier("dram").count = units;
    if (units > 1) config.balancer.name = "round-robin";
    if (cache == "residency-window" && layout == "neuron") {
      config.predictor.name = "low-rank";
      config.predictor.tensors = kDemo + "/predictor-r32.safetensors";
    }
    if (layout == "channel-group") {
      // With a fixed sparsity, the budget decides only what is read, not what is left out.
      config.predictor.name = "top-k";
      config.predictor.settings = {{"sparsity", 0.5, "test"}};
    }
    return config;
  }
  static Result<std::unique_ptr<Runtime>> start(const Config& config, KernelObserver* observer = nullptr) {
    RuntimeOptions options;
    options.observer = observer;
    options.quiet = true;
    options.fit = true;
    options.logit_rows = kPrompt;
    TIERD_ASSIGN(std::unique_ptr<Runtime> runtime, make_runtime(config, options));
    TIERD_TRY(runtime->load());
    return runtime;
  }
  // Feeds the prompt as one batch, then token by token. Calls `between` before each step.
  static std::vector<float> run(Runtime& runtime, const std::function<void(uint32_t)>& between = {}) {
    std::vector<float> logits;
    std::vector<uint32_t> tokens = kTokens;
    for (uint32_t& token : tokens) token %= runtime.engine().vocab_size();
    for (uint32_t i = 0; i < tokens.size();) {
      if (between) between(i);
      const uint32_t count = i == 0 ? kPrompt : 1;
      const Status fed = feed(runtime.engine(), tokens, i, count, logits);
      EXPECT_TRUE(fed.ok()) << fed.error().line();
      i += count;
    }
    EXPECT_TRUE(runtime.engine().drain().ok());
    return logits;
  }
  static std::vector<float> undisturbed(const Config& config) {
    auto runtime = start(config);
    EXPECT_TRUE(runtime.ok()) << runtime.error().line();
    return run(**runtime);
  }
  static uint64_t held(const Runtime& runtime) {
    uint64_t bytes = 0;
    const std::vector<Edition>& editions = runtime.plan().model.sites.editions;
    for (const Residency& residency : runtime.residencies()) {
      for (EditionId e = 0; e < editions.size(); ++e)
        bytes += uint64_t{residency.max_slots(e)} * editions[e].slot_bytes;
    }
    return bytes;
  }
  static uint64_t resident_line(const Runtime& runtime) {
    for (const Budget::Line& line : runtime.budget().lines()) {
      if (line.name == "resident weights") return line.bytes;
    }
    return 0;
  }
  static inline std::string cache_;
};

TEST_F(MovingBudget, LosesNoBit) {
  // From each of these tokens on, this share of all weights may be resident. More than 1 means all.
  const std::map<uint32_t, double> budgets = {{4, 0.2},  {6, 0.4},   {7, 0.8}, {9, 0.4},
                                              {10, 0.2}, {13, 0.01}, {14, 2},  {15, 0.3}};
  Moves moves;
  for (const char* layout : {"row", "neuron", "channel-group"}) {
    for (const uint32_t units : {1u, 2u}) {
      for (const char* cache :
           {"lru", "lfu", "pinned", "static", "fifo", "residency-window", "context-lfu", "layer-map"}) {
        SCOPED_TRACE(std::string(cache) + ", " + layout + ", " + std::to_string(units));
        const Config config = MovingBudget::config(cache, layout, units);
        const std::vector<float> expected = undisturbed(config);
        auto made = start(config, &moves);
        ASSERT_TRUE(made.ok()) << made.error().line();
        Runtime& runtime = **made;
        uint64_t peak = runtime.budget().peak();
        const std::vector<float> logits = run(runtime, [&](uint32_t token) {
          const auto budget = budgets.find(token);
          if (budget == budgets.end()) return;
          const uint64_t beside = runtime.budget().used() - resident_line(runtime);
          const auto whole = static_cast<double>(runtime.plan().memory.tiers.front().whole);
          const uint64_t bytes = beside + static_cast<uint64_t>(budget->second * whole);
          const Status changed = runtime.set_capacity(std::to_string(bytes), false);
          ASSERT_TRUE(changed.ok()) << budget->second << ": " << changed.error().line();
          EXPECT_EQ(runtime.budget().capacity(), bytes);
          peak = std::max(peak, runtime.budget().used());
          EXPECT_EQ(resident_line(runtime), held(runtime));
          EXPECT_LE(runtime.budget().used(), runtime.budget().capacity());
          EXPECT_EQ(runtime.plan().memory.tiers.front().capacity, runtime.budget().capacity());
        });
        expect_the_same_bits(logits, expected);
        EXPECT_EQ(runtime.budget().peak(), peak);
        ASSERT_EQ(runtime.budget_changes().size(), budgets.size());
        const auto& first = runtime.budget_changes().front();
        EXPECT_EQ(first.step, 1u);
        EXPECT_LT(first.to, first.from);
        EXPECT_EQ(runtime.budget_changes()[2].from, runtime.budget_changes()[1].to);
      }
    }
  }
  EXPECT_GT(moves.slots, 0u);
}

// Once the budget has room again, the pinned cache fills it, and no step reads from flash.
TEST_F(MovingBudget, FillsWhatItGets) {
  auto made = start(config("pinned", "row", 1));
  ASSERT_TRUE(made.ok());
  Runtime& runtime = **made;
  ASSERT_TRUE(runtime.set_capacity("all", false).ok());
  const uint64_t read = runtime.scheduler().counters().read_bytes;
  (void)run(runtime);
  EXPECT_EQ(runtime.scheduler().counters().read_bytes, read);
  EXPECT_EQ(runtime.plan().memory.tiers.front().arena, runtime.plan().memory.tiers.front().whole);
  ASSERT_TRUE(runtime.set_capacity("60%", false).ok());
  EXPECT_LT(held(runtime), runtime.plan().memory.tiers.front().whole);
  // A cache that is installed later receives the present budget.
  ASSERT_TRUE(runtime.swap("cache", StrategyConfig{"lru"}).ok());
  ASSERT_TRUE(runtime.set_capacity("30%", false).ok());
  ASSERT_TRUE(runtime.swap("cache", StrategyConfig{"pinned"}).ok());
  ASSERT_TRUE(runtime.set_capacity("45%", false).ok());
  EXPECT_LE(runtime.budget().used(), runtime.budget().capacity());
}

TEST_F(MovingBudget, WhatCannotBeIsRefusedAndNothingChanges) {
  const Config config = MovingBudget::config("lru", "neuron", 1);
  const std::vector<float> expected = undisturbed(config);
  auto made = start(config);
  ASSERT_TRUE(made.ok());
  Runtime& runtime = **made;
  const uint64_t capacity = runtime.budget().capacity();
  const uint64_t least = runtime.budget().used() - resident_line(runtime);
  const std::vector<float> logits = run(runtime, [&](uint32_t token) {
    if (token == 5) {
      const Status small = runtime.set_capacity("1000", false);
      EXPECT_EQ(small.code(), Code::no_space);
      EXPECT_THAT(small.error().line(), HasSubstr("tiers.dram.capacity: 1.00 kB is too little: "));
      EXPECT_THAT(small.error().line(), HasSubstr("(" + std::to_string(least) + " bytes)"));
      EXPECT_EQ(runtime.set_capacity(std::to_string(least - 1), false).code(), Code::no_space);
      EXPECT_EQ(runtime.set_capacity("much", false).code(), Code::invalid_argument);
      EXPECT_TRUE(runtime.budget_changes().empty());
      EXPECT_EQ(runtime.budget().capacity(), capacity);
    } else if (token == 8) {
      EXPECT_TRUE(runtime.set_capacity(std::to_string(least), false).ok());
      EXPECT_EQ(held(runtime), 0u);
    } else if (token == 10) {
      EXPECT_TRUE(runtime.set_capacity("70%", false).ok());
    } else if (token == 12) {
      EXPECT_TRUE(runtime.set_capacity("1", true).ok());
      EXPECT_TRUE(runtime.budget_changes().back().raised_to_least);
      EXPECT_EQ(runtime.budget().capacity(), least);
    }
  });
  expect_the_same_bits(logits, expected);

  auto none = start(MovingBudget::config("none", "row", 1));
  ASSERT_TRUE(none.ok());
  const Status cannot = (*none)->set_capacity("50%", false);
  EXPECT_EQ(cannot.code(), Code::unsupported);
  EXPECT_THAT(cannot.error().line(), HasSubstr("cache 'none': cannot change its size"));
}

}  // namespace
}  // namespace tierd
