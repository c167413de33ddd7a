// Lossless means the same bits as the resident run on the same instruction set, whatever is read when, by
// which device and in which order, in whatever chunks and on however many threads.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/e2e/golden_model.h"

namespace tierd {
namespace {

struct Variant {
  std::string name;
  uint32_t chunk = kGoldenTokens;
  void (*change)(Config&) = [](Config&) {};
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"chunk_1", 1},
      {"chunk_5", 5},
      {"threads_2", kGoldenTokens, [](Config& c) { c.threads = 2; }},
      {"threads_3_chunk_7", 7, [](Config& c) { c.threads = 3; }},
      {"naive", 1, [](Config& c) { c.cache.name = "none", c.tier("dram").capacity = "50%"; }},
      {"naive_prefill", 12, [](Config& c) { c.cache.name = "none", c.tier("dram").capacity = "50%"; }},
      {"naive_without_prefetch", 1,
       [](Config& c) { c.cache.name = "none", c.tier("dram").capacity = "50%", c.prefetch = false; }},
      {"hybrid_25", 1, [](Config& c) { c.tier("dram").capacity = "25%"; }},
      {"hybrid_50", 1, [](Config& c) { c.tier("dram").capacity = "50%"; }},
      {"hybrid_75", 1, [](Config& c) { c.tier("dram").capacity = "75%"; }},
      {"hybrid_75_prefill", 9, [](Config& c) { c.tier("dram").capacity = "75%"; }},
      {"hybrid_pread", 1, [](Config& c) { c.tier("dram").capacity = "60%", use_device(c, "pread"); }},
      {"hybrid_flash_thread", 1,
       [](Config& c) { c.tier("dram").capacity = "60%", c.tier("flash").thread = "own"; }},
      {"hybrid_both_threads", 3,
       [](Config& c) {
         c.tier("dram").capacity = "60%", c.tier("flash").thread = "own", c.tier("dram").thread = "own",
         c.threads = 2;
       }},
      {"lru_60", 1, [](Config& c) { c.cache.name = "lru", c.tier("dram").capacity = "60%"; }},
      {"lru_90_without_prefetch", 1,
       [](Config& c) { c.cache.name = "lru", c.tier("dram").capacity = "90%", c.prefetch = false; }},
      {"lru_90_shuffled", 2,
       [](Config& c) { c.cache.name = "lru", c.tier("dram").capacity = "90%", c.shuffle = "11"; }},
      {"lfu_70", 1, [](Config& c) { c.cache.name = "lfu", c.tier("dram").capacity = "70%"; }},
      {"static_60", 3, [](Config& c) { c.cache.name = "static", c.tier("dram").capacity = "60%"; }},
      {"shuffle_1", 1, [](Config& c) { c.tier("dram").capacity = "50%", c.shuffle = "1"; }},
      {"shuffle_2", 4, [](Config& c) { c.tier("dram").capacity = "50%", c.shuffle = "2"; }},
      {"shuffle_3", 1,
       [](Config& c) { c.cache.name = "none", c.tier("dram").capacity = "50%", c.shuffle = "3"; }},
      {"shuffle_4_pread", 1,
       [](Config& c) {
         c.cache.name = "lru", c.tier("dram").capacity = "70%", c.shuffle = "4", use_device(c, "pread");
       }},
  };
  return all;
}

class Lossless : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { cache_ = use_test_cache(); }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }

  // Adding results has another order of arithmetic than placing rows. Within one layout the bits depend
  // neither on the time of reads nor on the place in the file, which `lay` varies by `turn` (0, 1, 2), dense
  // or sparse.
  static void every_way_sums_alike(const std::string& layout,
                                   const std::function<void(Config&, uint32_t turn)>& lay) {
    const Golden golden = read_golden(GetParam());
    for (const bool sparse : {false, true}) {
      Config resident = golden_config(GetParam());
      resident.layout = layout;
      if (sparse) resident.predictor.name = "random";
      for (const uint32_t chunk : {1u, kGoldenTokens}) {
        const auto expected = run_all_logits(resident, golden.tokens, chunk);
        ASSERT_TRUE(expected.ok()) << expected.error().line();
        uint32_t tried = 0;
        for (const Variant& variant : variants()) {
          // The random predictor draws a set for each step, so only runs with equal chunks agree.
          if (sparse ? variant.chunk != chunk : (variant.chunk == 1) != (chunk == 1)) continue;
          Config config = resident;
          variant.change(config);
          const uint32_t turn = tried % 3;
          lay(config, turn);
          // Alternates gap reads and none, and direct landing and the bounce buffer.
          read_gaps(config, tried / 3 % 2 == 1 ? "64 KiB" : "0");
          land_reads(config, tried / 6 % 2 == 1 ? "bounce" : "direct");
          ++tried;
          SCOPED_TRACE(variant.name + (sparse ? " sparse, turn " : ", turn ") + std::to_string(turn));
          const auto logits = run_all_logits(config, golden.tokens, variant.chunk);
          ASSERT_TRUE(logits.ok()) << logits.error().line();
          expect_the_same_bits(*logits, *expected);
        }
      }
    }
  }

  static inline std::string cache_;
};

// Parameter: the cache.
class SmallBudgets : public Lossless {};

TEST_P(Lossless, EveryWayGivesTheBitsOfTheResidentRun) {
  const Golden golden = read_golden(GetParam());
  const Config resident = golden_config(GetParam());
  const auto expected = run_all_logits(resident, golden.tokens, kGoldenTokens);
  ASSERT_TRUE(expected.ok()) << expected.error().line();
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    Config config = resident;
    variant.change(config);
    const auto logits = run_all_logits(config, golden.tokens, variant.chunk);
    ASSERT_TRUE(logits.ok()) << logits.error().line();
    expect_the_same_bits(*logits, *expected);
  }
}

// Cuts the FFN into bundles.
TEST_P(Lossless, EveryWayGivesTheBitsOfTheResidentRunInBundles) {
  // One model of each kind of network and encoding; golden_test.cc bundles all models.
  static const std::set<std::string> kinds = {"llama2",          "llama2-bf16", "llama-fatrelu",
                                              "llama-odd-sizes", "opt",         "opt-f16",
                                              "falcon-grouped",  "persimmon",   "phi"};
  if (kinds.count(GetParam()) == 0) GTEST_SKIP() << "bundled as another one is";
  // With bundling, and with each piece as an extent of its own.
  every_way_sums_alike("neuron", [](Config& config, uint32_t turn) {
    if (turn == 1) config.bundling = "none";
  });
}

// Cuts every matrix by its input channels.
TEST_P(Lossless, EveryWayGivesTheBitsOfTheResidentRunInChannels) {
  static const std::set<std::string> kinds = {
      "llama2",         "llama2-bf16", "gguf-llama-q4_0", "llama-odd-sizes", "opt",
      "falcon-grouped", "phi",         "qwen3-moe"};
  if (kinds.count(GetParam()) == 0) GTEST_SKIP() << "cut as another one is";
  every_way_sums_alike("channel-group", [](Config& config, uint32_t turn) { config.layer_group = 1 + turn; });
}

// The embedded model's networks have many runs. Some are prefetched and some streamed through few staging
// blocks; no pass may wait for a block for ever.
TEST_P(SmallBudgets, OfBundlesGiveTheBitsOfTheResidentRun) {
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < 10; ++i) tokens.push_back(3 + 7 * i);
  Config config;
  config.model = TIERD_SOURCE_DIR "/configs/models/demo";
  config.layout = "neuron";
  config.threads = 1;
  config.bind = false;
  const auto expected = run_all_logits(config, tokens, 1);
  ASSERT_TRUE(expected.ok()) << expected.error().line();
  for (const char* capacity : {"30%", "35%", "40%", "60%"}) {
    SCOPED_TRACE(capacity);
    config.tier("dram").capacity = capacity;
    config.cache.name = GetParam();
    const auto logits = run_all_logits(config, tokens, 1);
    ASSERT_TRUE(logits.ok()) << logits.error().line();
    expect_the_same_bits(*logits, *expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Caches, SmallBudgets, testing::Values("lru", "lfu", "fifo"),
                         [](const auto& test) { return std::string(test.param); });

INSTANTIATE_TEST_SUITE_P(Models, Lossless, testing::ValuesIn(golden_runs()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace tierd
