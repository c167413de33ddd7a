// Runs the shipped systems with a GPU that the host emulates (tiers/gpu): dense work, neurons or both on the
// GPU, whose memory only its own agent reaches.
#include <gtest/gtest.h>

#include <functional>

#include "tests/e2e/golden_model.h"
#include "tests/e2e/shipped_configuration.h"

namespace tierd {
namespace {

constexpr uint32_t kChunk = 8;

class Gpu : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { cache_ = use_test_cache(); }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }

  static std::vector<std::string> models() {
    return {"gguf-llama-q4_0", "llama2", "mixtral", "opt-f16", "phi"};
  }
  // Adds a tier over DRAM with an agent of this kind.
  static Config with(const Config& base, const std::string& kind) {
    Config config = base;
    TierConfig& gpu = config.tier("gpu");
    gpu.kind = kind;
    gpu.over = "dram";
    gpu.capacity = "50%";
    return config;
  }
  // Both tiers compute neurons; the upper one computes the dense segments.
  static Config divided(const Config& base, const std::string& kind) {
    Config config = with(base, kind);
    config.dense = "gpu";
    config.balancer.name = "round-robin";
    return config;
  }
  static void expect_the_bits_of(const Config& other, const Config& config,
                                 std::span<const uint32_t> tokens) {
    const auto expected = run_all_logits(other, tokens, kChunk);
    const auto logits = run_all_logits(config, tokens, kChunk);
    ASSERT_TRUE(expected.ok()) << expected.error().line();
    ASSERT_TRUE(logits.ok()) << logits.error().line();
    expect_the_same_bits(*logits, *expected);
  }

 private:
  static inline std::string cache_;
};

void over_a_slow_link(Config& config) {
  config.tier("gpu").settings.push_back({"link_rate", std::string("200 MB"), "test"});
}
void directly(Config& config) {
  config.tier("gpu").settings.push_back({"direct", true, "test"});
}
void shuffled(Config& config) {
  config.shuffle = "4";
}

// With one unit for all neurons, the bits equal those of the configuration without a GPU, wherever neurons
// and dense segments are computed.
TEST_P(Gpu, SaysWhatTheConfigurationSaysWithoutOne) {
  const std::function<void(Config&)> variants[] = {
      [](Config& c) { c.dense = "gpu"; },
      [](Config& c) { c.dense = "gpu", c.attention = "dram", shuffled(c); },
      [](Config& c) { c.tier("dram").compute = false; },
      [](Config& c) { c.tier("dram").compute = false, over_a_slow_link(c); },
      [](Config& c) {
        c.tier("dram").compute = false, c.tier("gpu").capacity = "20%", c.cache = {"lru"}, shuffled(c);
      },
      [](Config& c) { c.tier("dram").compute = false, directly(c); },
      [](Config& c) { c.dense = "gpu", directly(c), over_a_slow_link(c), shuffled(c); },
      [](Config& c) {
        c.tier("dram").compute = false, c.tier("gpu").capacity = "20%", c.cache = {"lru"}, directly(c);
      },
      [](Config& c) { c.tier("dram").compute = false, c.tier("gpu").thread = "own", directly(c); },
  };
  for (const std::string& model : models()) {
    const Golden golden = read_golden(model);
    const Config base = configuration(GetParam(), golden_path(model), false);
    const auto expected = run_all_logits(base, golden.tokens, kChunk);
    if (expected.code() == Code::unsupported) continue;  // not every model has every layout
    ASSERT_TRUE(expected.ok()) << expected.error().line();
    for (size_t v = 0; v < std::size(variants); ++v) {
      SCOPED_TRACE(model + ", variant " + std::to_string(v));
      Config config = with(base, "gpu");
      variants[v](config);
      const auto logits = run_all_logits(config, golden.tokens, kChunk);
      ASSERT_TRUE(logits.ok()) << logits.error().line();
      expect_the_same_bits(*logits, *expected);
    }
  }
}

// Each unit sums its own neurons, so the bits equal those of two DRAM units that reach both memories.
TEST_P(Gpu, SharesNeuronsWithDram) {
  for (const std::string& model : models()) {
    const Golden golden = read_golden(model);
    const Config base = configuration(GetParam(), golden_path(model), false);
    if (plan_run(base, {.fit = true, .quiet = true}).code() == Code::unsupported) continue;
    SCOPED_TRACE(model);
    const Config other = divided(base, "dram");
    Config config = divided(base, "gpu");
    expect_the_bits_of(other, config, golden.tokens);
    shuffled(config);
    config.tier("gpu").count = 1;
    config.measure_every = 2;
    expect_the_bits_of(other, config, golden.tokens);
  }
}

TEST_P(Gpu, TheDemoModelToo) {
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < kDemoTokens / 2; ++i) tokens.push_back(300 + i * 97 % 1200);
  const Config base = configuration(GetParam(), kDemo, true);
  Config above = with(base, "gpu");
  above.tier("dram").compute = false;
  expect_the_bits_of(base, above, tokens);
  expect_the_bits_of(divided(base, "dram"), divided(base, "gpu"), tokens);
}

// Neurons that neither memory holds are read into the GPU's memory directly, none of them through DRAM.
TEST_P(Gpu, ReadsDirectlyWhatDramDoesNotHold) {
  Config config = with(configuration(GetParam(), kDemo, true), "gpu");
  config.tier("dram").compute = false;
  config.tier("gpu").capacity = config.tier("dram").capacity = "30%";
  directly(config);
  const auto runtime = make_runtime(config, {.fit = true, .quiet = true});
  ASSERT_TRUE(runtime.ok()) << runtime.error().line();
  ASSERT_TRUE((*runtime)->load().ok());
  const std::vector<TierLink> loaded = (*runtime)->links();
  std::vector<float> logits;
  const std::vector<uint32_t> tokens = {300, 397, 494, 591};
  for (uint32_t done = 0; done < tokens.size(); ++done)
    ASSERT_TRUE(feed((*runtime)->engine(), tokens, done, 1, logits).ok());
  ASSERT_TRUE((*runtime)->engine().drain().ok());
  const std::vector<TierLink> links = (*runtime)->links();
  ASSERT_EQ(links.size(), 3u);
  EXPECT_EQ(links[0].from + links[0].to, "flashdram");
  EXPECT_EQ(links[0].counters.bytes, loaded[0].counters.bytes);
  EXPECT_EQ(links[2].from + links[2].to, "flashgpu");
  EXPECT_GT(links[2].counters.bytes, loaded[2].counters.bytes);
  EXPECT_FALSE((*runtime)->direct_reads(0).has_value());
  const auto direct = (*runtime)->direct_reads(1);
  ASSERT_TRUE(direct.has_value());
  EXPECT_EQ(direct->way, "staged through the host's memory");
  EXPECT_EQ(direct->counts.bytes, links[2].counters.bytes);
  EXPECT_EQ(direct->counts.verified_bytes, direct->counts.bytes);
  EXPECT_EQ((*runtime)->flash_counts().bytes, links[0].counters.bytes + links[2].counters.bytes);
  bool counted = false;
  for (const Budget::Line& line : (*runtime)->budget(0).lines())
    counted = counted || (line.name == "direct reads" && line.bytes != 0);
  EXPECT_TRUE(counted);
}

INSTANTIATE_TEST_SUITE_P(Configurations, Gpu,
                         testing::Values("hybrid", "llm-in-a-flash", "activeflow", "moe-streaming"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tierd
