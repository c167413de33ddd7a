// Runs models that are stored in several encodings. The quantizer alone decides the edition of each neuron,
// and the bits equal those of the resident run wherever neurons are and by whichever link they arrive.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/temp_folder.h"
#include "tests/e2e/golden_store.h"
#include "tests/e2e/gpu_above.h"
#include "tests/e2e/mixed_store.h"

namespace tierd {
namespace {

struct Case {
  std::string model;
  Layout layout;
  std::vector<Encoding> editions;
  const char* ratios;
};

struct Variant {
  std::string name;
  uint32_t chunk;
  void (*change)(Config&) = [](Config&) {};
};

void keep(Config& config, const char* cache, const char* dram) {
  config.cache.name = cache;
  config.tier("dram").capacity = dram;
}

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"chunk_7", 7},
      {"threads_3", 1, [](Config& c) { c.threads = 3; }},
      {"naive", 1, [](Config& c) { keep(c, "none", "60%"); }},
      {"hybrid_prefill", 7, [](Config& c) { keep(c, "pinned", "60%"); }},
      {"lru", 1, [](Config& c) { keep(c, "lru", "60%"); }},
      {"window_shuffled", 1, [](Config& c) { keep(c, "residency-window", "60%"), c.shuffle = "3"; }},
      {"atu", 1, [](Config& c) { keep(c, "atu", "60%"); }},
      {"atu_prefill_shuffled", 7, [](Config& c) { keep(c, "atu", "50%"), c.shuffle = "5"; }},
      {"atu_without_prefetch", 1, [](Config& c) { keep(c, "atu", "60%"), c.prefetch = false; }},
      {"gpu", 1, [](Config& c) { use_gpu(c, "auto"); }},
      {"half_gpu_atu", 1, [](Config& c) { use_gpu(c, "60%"), keep(c, "atu", "auto"); }},
      {"gpu_atu_dram_layers", 1,
       [](Config& c) {
         use_gpu(c, "60%"), keep(c, "atu", "40%");
         c.tier("dram").compute = false, c.tier("dram").cache.name = "layers";
         c.tier("dram").staging = "40%";
       }},
      {"gpu_atu_dram_layers_shuffled", 7,
       [](Config& c) {
         use_gpu(c, "60%"), keep(c, "atu", "30%");
         c.tier("dram").compute = false, c.shuffle = "11";
         c.tier("dram").cache = {
             "layers", "", "", {{"skip_held", true, "test"}, {"distance", int64_t{1}, "test"}}};
       }},
      {"half_gpu_atu_shuffled", 7,
       [](Config& c) { use_gpu(c, "60%"), keep(c, "atu", "60%"), c.shuffle = "7"; }},
  };
  return all;
}

class Editions : public testing::TestWithParam<Case> {
 protected:
  // Writes the store of the case, with its further editions or with the best edition alone.
  static Config store(const TempFolder& folder, bool with_editions) {
    const Case& of = GetParam();
    return store_of_editions(of.model, folder.path() + (with_editions ? "/editions" : "/one"), of.layout,
                             with_editions ? of.editions : std::vector<Encoding>());
  }
  static std::vector<float> logits(const Config& config, const Golden& golden, uint32_t chunk) {
    const auto found = run_all_logits(config, golden.tokens, chunk);
    EXPECT_TRUE(found.ok()) << found.error().line();
    return found.ok() ? *found : std::vector<float>();
  }
};

TEST_P(Editions, TheBestAloneIsTheModelWithoutOthers) {
  const TempFolder folder;
  const Golden golden = read_golden(GetParam().model);
  const std::vector<float> expected = logits(store(folder, false), golden, 1);
  Config config = store(folder, true);
  expect_the_same_bits(logits(config, golden, 1), expected);
  std::string whole = "100";
  for (size_t i = 0; i < GetParam().editions.size(); ++i) whole += "/0";
  mix(config, whole);
  for (const Variant& variant : variants()) {
    if (variant.chunk != 1) continue;
    SCOPED_TRACE(variant.name);
    Config found = config;
    variant.change(found);
    expect_the_same_bits(logits(found, golden, 1), expected);
  }
  // Results that mix editions differ from those of the best edition.
  if (golden_is_mixture(GetParam().model)) {
    mix(config, GetParam().ratios);
    EXPECT_NE(logits(config, golden, 1), expected);
  }
}

TEST_P(Editions, MixedBitsDoNotDependOnWhereNeuronsAre) {
  const TempFolder folder;
  const Golden golden = read_golden(GetParam().model);
  Config resident = store(folder, true);
  mix(resident, GetParam().ratios);
  if (!golden_is_mixture(GetParam().model)) use_random_ranks(resident);
  std::vector<float> expected[8];
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    std::vector<float>& of_chunk = expected[variant.chunk];
    if (of_chunk.empty()) of_chunk = logits(resident, golden, variant.chunk);
    Config found = resident;
    variant.change(found);
    expect_the_same_bits(logits(found, golden, variant.chunk), of_chunk);
  }
}

// A prefetched neuron may be unneeded, or in another edition than the quantizer then chooses.
TEST_P(Editions, LookingAheadChangesNothing) {
  if (golden_is_mixture(GetParam().model)) GTEST_SKIP() << "its routers choose";
  const TempFolder folder;
  const Golden golden = read_golden(GetParam().model);
  Config resident = store(folder, true);
  mix(resident, GetParam().ratios);
  resident.quantizer.settings.push_back({"margin", 0.3, "test"});
  use_random_ranks(resident);
  const std::vector<float> expected = logits(resident, golden, 1);
  for (const char* const cache : {"atu", "none", "residency-window"}) {
    for (const int64_t layers : {1, 2}) {
      SCOPED_TRACE(cache + std::string(", layers ahead: ") + std::to_string(layers));
      Config found = resident;
      use_gpu(found, "60%");
      found.tier("gpu").cache.name = cache;
      found.tier("dram").compute = false;
      found.predictor.settings.push_back({"layers_ahead", layers, "test"});
      found.shuffle = "3";
      expect_the_same_bits(logits(found, golden, 1), expected);
    }
  }
}

// A store with the best edition alone, of which moves to the GPU make the others, gives the bits of a store
// with all editions, if the best one is the model's own encoding. Columns of block encodings are encoded anew
// in the store; for these only the independence of placement is checked.
TEST_P(Editions, MadeOnTheLinkAreThoseThatAreStored) {
  const TempFolder folder;
  const Golden golden = read_golden(GetParam().model);
  Config resident = store(folder, true), one = store(folder, false);
  for (Config* const config : {&resident, &one}) {
    mix(*config, GetParam().ratios);
    if (!golden_is_mixture(GetParam().model)) use_random_ranks(*config);
  }
  const auto manifest = read_manifest(one.model);
  ASSERT_TRUE(manifest.ok()) << manifest.error().line();
  const bool keeps = std::ranges::none_of(
      manifest->sites, [](const StoredSite& site) { return site.encoding_error.has_value(); });
  EXPECT_EQ(keeps, GetParam().model != "gguf-qwen2-q8_0");
  std::vector<float> expected[8];
  size_t tried = 0;
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    Config found = one;
    variant.change(found);
    if (found.find_tier("gpu") == nullptr) continue;
    ++tried;
    found.tier("dram").compute = false;
    found.tier("gpu").recode = listed(GetParam().editions);
    std::vector<float>& of_chunk = expected[variant.chunk];
    const std::vector<float> made = logits(found, golden, variant.chunk);
    if (of_chunk.empty()) of_chunk = keeps ? logits(resident, golden, variant.chunk) : made;
    expect_the_same_bits(made, of_chunk);
  }
  EXPECT_EQ(tried, 5u);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Editions,
    testing::Values(
        Case{"llama2-f16", Layout::neuron, {Encoding::q8_0, Encoding::q4_0}, "25/25/50"},
        Case{"opt", Layout::neuron, {Encoding::f16, Encoding::q8_0, Encoding::q4_0}, "10/20/30/40"},
        Case{"gguf-qwen2-q8_0", Layout::neuron, {Encoding::q4_0}, "50/50"},
        Case{"gguf-mixtral-f32", Layout::row, {Encoding::bf16, Encoding::q4_0}, "0/50/50"}),
    [](const auto& test) {
      std::string name = test.param.model;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace tierd
