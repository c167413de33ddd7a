// A tier of several agents: the balancer distributes neurons, units exchange inputs and results, and the bits
// equal those of one agent with all neurons.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/e2e/golden_model.h"
#include "tests/engine/model_world.h"

namespace tierd {
namespace {

using testing::HasSubstr;

const std::vector<uint32_t> kTokens = {1, 17, 250, 33, 33, 299, 4, 90, 12, 61, 7, 8};
const std::string kDemo = TIERD_SOURCE_DIR "/configs/models/demo";

struct Model {
  const char* name;
  ModelConfig config;
  Encoding encoding;
};

class Units : public testing::Test {
 protected:
  static void SetUpTestSuite() { cache_ = use_test_cache(); }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }
  static Config base(const ModelWorld& world) {
    Config config;
    config.model = world.folder();
    config.threads = 1;
    config.bind = false;
    config.context = 32;
    return config;
  }
  static Config dealt(const ModelWorld& world, uint32_t units, int64_t run = 1) {
    Config config = base(world);
    config.tier("dram").count = units;
    config.balancer.name = "round-robin";
    config.balancer.settings = {{"run", run, "test"}};
    return config;
  }
  static RuntimeOptions quiet(uint32_t logit_rows = 1) {
    RuntimeOptions options;
    options.quiet = true;
    options.fit = true;
    options.logit_rows = logit_rows;
    return options;
  }

 private:
  static inline std::string cache_;
};

TEST_F(Units, GiveTheBitsOfOne) {
  struct Variant {
    const char* name;
    uint32_t units;
    uint32_t chunk;
    void (*change)(Config&);
  };
  const Variant variants[] = {
      {"all resident", 2, 4, [](Config&) {}},
      {"four units", 4, 1, [](Config& c) { c.tier("dram").capacity = "90%"; }},
      {"pinned", 2, 1, [](Config& c) { c.tier("dram").capacity = "80%"; }},
      {"pinned, in runs", 2, 3,
       [](Config& c) { c.tier("dram").capacity = "80%", c.balancer.settings[0].value = int64_t{3}; }},
      {"none", 2, 1, [](Config& c) { c.tier("dram").capacity = "80%", c.cache.name = "none"; }},
      {"lru", 2, 5, [](Config& c) { c.tier("dram").capacity = "80%", c.cache.name = "lru"; }},
      {"lfu without prefetch", 3, 1,
       [](Config& c) { c.tier("dram").capacity = "90%", c.cache.name = "lfu", c.prefetch = false; }},
      {"shuffled", 2, 1,
       [](Config& c) { c.tier("dram").capacity = "80%", c.cache.name = "lru", c.shuffle = "7"; }},
      {"shuffled, three", 3, 6, [](Config& c) { c.tier("dram").capacity = "80%", c.shuffle = "8"; }},
      {"threads of their own", 2, 1,
       [](Config& c) {
         c.tier("dram").capacity = "80%", c.tier("dram").thread = "own", c.tier("flash").thread = "own",
         c.threads = 2;
       }},
      {"dense segments elsewhere", 2, 3, [](Config& c) { c.dense = "dram.1"; }},
      {"dense elsewhere, streamed", 3, 1,
       [](Config& c) { c.tier("dram").capacity = "80%", c.cache.name = "lru", c.dense = "dram.2"; }},
      {"attention elsewhere", 2, 4, [](Config& c) { c.attention = "dram.1"; }},
      {"heads divided", 2, 4, [](Config& c) { c.attention = "dram"; }},
      {"heads divided, more units than heads", 4, 1, [](Config& c) { c.attention = "dram"; }},
      {"heads divided, dense elsewhere, shuffled", 3, 2,
       [](Config& c) {
         c.tier("dram").capacity = "80%", c.attention = "dram", c.dense = "dram.1", c.shuffle = "9";
       }},
      {"heads divided, threads of their own", 3, 3,
       [](Config& c) {
         c.tier("dram").capacity = "80%", c.attention = "dram", c.tier("dram").thread = "own", c.threads = 3;
       }},
      {"neurons of one, heads of the other", 2, 2,
       [](Config& c) { c.balancer = StrategyConfig{"single"}, c.attention = "dram.1"; }},
      {"four on two cores", 4, 2, [](Config& c) { c.tier("dram").capacity = "90%", c.threads = 2; }},
      {"four on two cores, threads of their own", 4, 2,
       [](Config& c) {
         c.tier("dram").capacity = "90%", c.threads = 2, c.bind = true;
         c.tier("dram").thread = "own", c.cache.name = "lru";
       }},
      {"one does all", 2, 1,
       [](Config& c) { c.tier("dram").capacity = "80%", c.balancer = StrategyConfig{"single"}; }},
  };
  const Model models[] = {{"llama", small_llama(), Encoding::f32},
                          {"opt, tied", small_opt(), Encoding::f16},
                          {"llama q8_0", small_llama(), Encoding::q8_0}};
  for (const Model& model : models) {
    const ModelWorld world(model.config, model.encoding);
    const auto expected = run_all_logits(base(world), kTokens, 1);
    ASSERT_TRUE(expected.ok()) << expected.error().line();
    for (const Variant& variant : variants) {
      SCOPED_TRACE(std::string(model.name) + ", " + variant.name);
      Config config = dealt(world, variant.units);
      variant.change(config);
      const auto logits = run_all_logits(config, kTokens, variant.chunk);
      ASSERT_TRUE(logits.ok()) << logits.error().line();
      expect_the_same_bits(*logits, *expected);
    }
  }
}

// Each unit sums its own neurons with their biases, and the sums are added in the order of the units. The
// bits differ from one unit's and are the same in every run.
TEST_F(Units, SumNeuronsWithTheirBiases) {
  for (const std::string& model : {golden_path("opt"), golden_path("phi"), kDemo}) {
    Config one;
    one.model = model;
    one.layout = "neuron";
    one.threads = 1;
    one.bind = false;
    one.context = 32;
    one.kv = "f32";
    std::vector<uint32_t> tokens = kTokens;
    for (uint32_t& token : tokens) token %= 128;  // the smallest vocabulary
    const auto expected = run_all_logits(one, tokens, 1);
    ASSERT_TRUE(expected.ok()) << expected.error().line();
    float top = 0;
    for (const float logit : *expected) top = std::max(top, std::fabs(logit));
    for (const uint32_t units : {2u, 3u}) {
      SCOPED_TRACE(model + ", " + std::to_string(units) + " units");
      Config config = one;
      config.tier("dram").count = units;
      config.balancer.name = "round-robin";
      const auto logits = run_all_logits(config, tokens, 1);
      ASSERT_TRUE(logits.ok()) << logits.error().line();
      ASSERT_EQ(logits->size(), expected->size());
      for (size_t i = 0; i < logits->size(); ++i) ASSERT_NEAR((*logits)[i], (*expected)[i], 1e-4F * top);
      config.tier("dram").capacity = "60%";
      config.cache.name = "lru";
      const auto streamed = run_all_logits(config, tokens, 1);
      ASSERT_TRUE(streamed.ok()) << streamed.error().line();
      expect_the_same_bits(*streamed, *logits);
    }
  }
}

// The time of two units that compute at once is counted once, and sleeping while they compute is not a stall.
TEST_F(Units, TimesThatOverlapAreNotAddedUp) {
  const ModelWorld world(small_llama(), Encoding::f32);
  Config config = dealt(world, 3);
  config.tier("dram").capacity = "80%";
  config.tier("dram").thread = config.tier("flash").thread = "own";
  auto runtime = make_runtime(config, quiet());
  ASSERT_TRUE(runtime.ok()) << runtime.error().line();
  ASSERT_TRUE((*runtime)->load().ok());
  Engine& engine = (*runtime)->engine();
  std::vector<float> logits;
  for (uint32_t i = 0; i < kTokens.size(); ++i) ASSERT_TRUE(feed(engine, kTokens, i, 1, logits).ok());
  for (const StepTimes& times : {engine.prefill_times(), engine.decode_times()}) {
    EXPECT_LE(times.compute_ns + times.stall_ns, times.wall_ns);
  }
  EXPECT_GT(engine.prefill_times().compute_ns + engine.decode_times().compute_ns, 0u);
}

TEST_F(Units, KeepWhatIsAtHomeThereAndNothingTwice) {
  const ModelWorld world(small_llama());
  Config config = dealt(world, 2);
  auto made = make_runtime(config, quiet());
  ASSERT_TRUE(made.ok()) << made.error().line();
  Runtime& runtime = **made;
  ASSERT_TRUE(runtime.load().ok());
  const SiteTable& sites = runtime.plan().model.sites;
  for (EditionId e = 0; e < sites.editions.size(); ++e) {
    for (uint32_t i = 0; i < sites.editions[e].n; ++i) {
      for (uint32_t u = 0; u < 2; ++u)
        EXPECT_EQ(runtime.residencies()[u].valid(e, i), i % 2 == u)
            << sites[sites.editions[e].owner].name << " " << i << " unit " << u;
    }
  }
  EXPECT_LE(runtime.budget().peak(), runtime.budget().capacity());
  std::vector<float> logits;
  ASSERT_TRUE(feed(runtime.engine(), kTokens, 0, 1, logits).ok());
  const SchedulerCounters& counters = runtime.scheduler().counters();
  EXPECT_GT(counters.hits, 10u);
  EXPECT_EQ(counters.misses + counters.staged, 0u);
  ASSERT_TRUE(runtime.engine().drain().ok());
}

TEST_F(Units, CachesAndBalancersAreSwapped) {
  const ModelWorld world(small_llama());
  const auto expected = run_all_logits(base(world), kTokens, 1);
  ASSERT_TRUE(expected.ok());
  Config config = dealt(world, 2);
  config.tier("dram").capacity = "80%";
  auto made = make_runtime(config, quiet());
  ASSERT_TRUE(made.ok()) << made.error().line();
  Runtime& runtime = **made;
  ASSERT_TRUE(runtime.load().ok());
  const std::pair<const char*, const char*> swaps[] = {{"cache", "lru"},
                                                       {"balancer", "single"},
                                                       {"cache", "lfu"},
                                                       {"balancer", "round-robin"},
                                                       {"cache", "pinned"}};
  std::vector<float> logits;
  for (uint32_t i = 0; i < kTokens.size(); ++i) {
    if (i % 2 == 1 && i / 2 < std::size(swaps)) {
      const Status swapped = runtime.swap(swaps[i / 2].first, StrategyConfig{swaps[i / 2].second});
      ASSERT_TRUE(swapped.ok()) << swapped.error().line();
    }
    ASSERT_TRUE(feed(runtime.engine(), kTokens, i, 1, logits).ok());
  }
  expect_the_same_bits(logits, *expected);
  ASSERT_TRUE(runtime.engine().drain().ok());
  for (const Residency& residency : runtime.residencies()) {
    for (EditionId e = 0; e < runtime.plan().model.sites.editions.size(); ++e) {
      EXPECT_EQ(residency.free_slots(e) + residency.valid_count(e), residency.max_slots(e));
    }
  }
}

TEST_F(Units, TheirNumberIsChecked) {
  const ModelWorld world(small_llama());
  const auto plan = plan_run(dealt(world, 33), quiet());
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().line(), HasSubstr("tiers.dram.count: 33"));
  // Each unit needs its own activations and staging.
  Config one = dealt(world, 1), four = dealt(world, 4);
  EXPECT_GT(plan_run(four, quiet())->memory.tiers.front().least,
            plan_run(one, quiet())->memory.tiers.front().least);
}

TEST_F(Units, NamesOfUnitsAreChecked) {
  const ModelWorld world(small_llama());
  Config config = dealt(world, 2);
  config.dense = "dram.2";
  EXPECT_EQ(plan_run(config, quiet()).error().line(),
            "run.dense: there is no unit 'dram.2'; expected one of dram.0, dram.1, or a tier's name for all "
            "of its units");
  config.dense = "";
  config.attention = "gpu";
  EXPECT_THAT(plan_run(config, quiet()).error().line(), HasSubstr("run.attention: there is no unit 'gpu'"));
  config.attention = "dram";
  const auto divided = plan_run(config, quiet()), one = plan_run(dealt(world, 2), quiet());
  ASSERT_TRUE(divided.ok() && one.ok());
  EXPECT_EQ(divided->memory.tiers.front().kv, one->memory.tiers.front().kv)
      << "each unit has the KV cache of its heads alone";
  Config wide;
  wide.model = golden_path("olmoe");
  wide.tier("dram").count = 2;
  wide.attention = "dram";
  EXPECT_THAT(plan_run(wide, quiet()).error().line(),
              HasSubstr("normalizes the queries of all heads together"));
  wide.attention = "dram.1";
  EXPECT_TRUE(plan_run(wide, quiet()).ok());
}

}  // namespace
}  // namespace tierd
