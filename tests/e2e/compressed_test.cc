// A pruned model gives the same bits dense and compressed, wherever its neurons are and whichever unit
// computes or expands them.
#include <gtest/gtest.h>

#include "core/run/store_codec.h"
#include "core/run/strategy_choices.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/golden_store.h"
#include "tests/e2e/gpu_above.h"
#include "tools/lab/synth/zeroed_source.h"

namespace tierd {
namespace {

struct Case {
  std::string model;
  Layout layout;
};

struct Variant {
  std::string name;
  uint32_t chunk = kGoldenTokens;
  void (*change)(Config&) = [](Config&) {};
  bool by_codec = false;  // also try a store compressed by zstd
};

void expand(Config& config, const char* tier) {
  config.tier(tier).compressed = "expanded";
}

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"resident", kGoldenTokens, [](Config&) {}, true},
      {"chunk_1", 1},
      {"chunk_7_threads_3", 7, [](Config& c) { c.threads = 3; }},
      {"f32_activations", 1, [](Config& c) { c.activations = "f32"; }},
      {"naive", 1, [](Config& c) { c.cache.name = "none", c.tier("dram").capacity = "60%"; }},
      {"hybrid", 1, [](Config& c) { c.tier("dram").capacity = "60%"; }},
      {"hybrid_prefill", 9, [](Config& c) { c.tier("dram").capacity = "60%"; }},
      {"lru", 1, [](Config& c) { c.cache.name = "lru", c.tier("dram").capacity = "75%"; }},
      {"shuffled", 4,
       [](Config& c) { c.cache.name = "none", c.tier("dram").capacity = "60%", c.shuffle = "3"; }},
      {"sparse", 1, [](Config& c) { c.predictor.name = "random"; }},
      {"gpu", 1, [](Config& c) { use_gpu(c, "auto"); }},
      {"half_gpu", 1, [](Config& c) { use_gpu(c, "60%"); }},
      {"expanded", 1, [](Config& c) { expand(c, "dram"); }},
      {"expanded_naive", 1,
       [](Config& c) { expand(c, "dram"), c.cache.name = "none", c.tier("dram").capacity = "75%"; }, true},
      {"expanded_hybrid_prefill", 9, [](Config& c) { expand(c, "dram"), c.tier("dram").capacity = "75%"; }},
      {"expanded_sparse_lru", 1,
       [](Config& c) {
         expand(c, "dram"), c.cache.name = "lru", c.predictor.name = "random";
         c.tier("dram").capacity = "75%";
       }},
      {"expanded_shuffled", 4,
       [](Config& c) {
         expand(c, "dram"), c.cache.name = "none", c.tier("dram").capacity = "60%", c.shuffle = "3";
       }},
      {"gpu_expands", 1, [](Config& c) { use_gpu(c, "auto"), expand(c, "gpu"); }},
      {"half_gpu_expands", 1,
       [](Config& c) { use_gpu(c, "60%"), expand(c, "gpu"), c.tier("dram").capacity = "60%"; }},
      {"half_gpu_expands_shuffled", 4,
       [](Config& c) { use_gpu(c, "60%"), expand(c, "gpu"), c.cache.name = "lru", c.shuffle = "5"; }},
      {"dram_expands_for_the_gpu", 1, [](Config& c) { use_gpu(c, "60%"), expand(c, "dram"); }, true},
  };
  return all;
}

class Compressed : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { cache_ = use_test_cache(); }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }
  static inline std::string cache_;
};

TEST_P(Compressed, GivesTheBitsOfTheDenseModel) {
  const Golden golden = read_golden(GetParam().model);
  const TempFolder folder;
  Config dense = golden_config(GetParam().model), bitmap = dense, zstd = dense;
  dense.model = folder.path() + "/dense";
  bitmap.model = folder.path() + "/bitmap";
  zstd.model = folder.path() + "/zstd";
  auto opened = open_source(golden_config(GetParam().model).model);
  ASSERT_TRUE(opened.ok()) << opened.error().line();
  const ZeroedSource source(std::move(*opened), 50);
  for (const Config* of : {&dense, &bitmap, &zstd}) {
    WriteOptions write{.neuron_bytes = 16384, .layout = GetParam().layout, .quiet = true};
    const std::string compression = of == &dense ? "none" : of == &bitmap ? "bitmap" : "zstd";
    const Status chosen = choose_compression(compression, plugin_path(dense), {}, "test", write);
    ASSERT_TRUE(chosen.ok()) << chosen.error().line();
    const Status written = write_store(source, of->model, write);
    ASSERT_TRUE(written.ok()) << written.error().line();
  }
  for (const Config* of : {&bitmap, &zstd}) {
    const auto made = read_manifest(of->model);
    ASSERT_TRUE(made.ok()) << made.error().line();
    const auto is_compressed = [](const StoredSite& site) { return site.compression != Compression::none; };
    EXPECT_GE(std::ranges::count_if(made->sites, is_compressed), of == &bitmap ? made->config.n_layers : 1u);
  }
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    Config expected_of = dense, found_of = bitmap;
    // The dense model runs resident. Other tests show that streaming does not change its results.
    variant.change(found_of);
    expected_of.activations = found_of.activations;
    expected_of.predictor = found_of.predictor;
    const auto expected = run_all_logits(expected_of, golden.tokens, variant.chunk);
    ASSERT_TRUE(expected.ok()) << expected.error().line();
    const auto found = run_all_logits(found_of, golden.tokens, variant.chunk);
    ASSERT_TRUE(found.ok()) << found.error().line();
    expect_the_same_bits(*found, *expected);
    if (!variant.by_codec) continue;
    found_of.model = zstd.model;
    const auto by_codec = run_all_logits(found_of, golden.tokens, variant.chunk);
    ASSERT_TRUE(by_codec.ok()) << by_codec.error().line();
    expect_the_same_bits(*by_codec, *expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Compressed,
    testing::Values(Case{"llama2", Layout::row}, Case{"llama2", Layout::neuron},
                    Case{"llama2-bf16", Layout::row}, Case{"opt-f16", Layout::row},
                    Case{"opt-f16", Layout::neuron}, Case{"llama-odd-sizes", Layout::row},
                    Case{"gguf-llama-q8_0", Layout::row}, Case{"phi", Layout::row},
                    Case{"falcon-grouped", Layout::neuron}, Case{"qwen3-moe", Layout::row}),
    [](const auto& test) {
      std::string name = test.param.model + "_" + std::string(tierd::name(test.param.layout));
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace tierd
