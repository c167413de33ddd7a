// Whole runs with the backend `cuda`, against the same runs on the CPU: the golden models, resident and
// streamed, and every way in which sites are cut. As a test this process plays the device; tests/bench/gpu
// has the same program for a GPU (TIERD_ON_GPU).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/run/store_codec.h"
#include "core/run/strategy_choices.h"
#include "core/store/writer.h"
#include "core/store/zeroed_source.h"
#include "tests/e2e/golden_model.h"
#include "tests/e2e/mixed_store.h"
#include "tests/e2e/shipped_configuration.h"
#include "tests/store/temp_folder.h"

namespace tierd {
namespace {

constexpr uint32_t kChunk = 8;
constexpr double kMostDivergence = 1e-5;

// Sum over rows of KL(expected || got), in nats, divided by their number; and no other token is the likeliest
// wherever the two likeliest are farther apart than any logit is off.
void expect_the_same_answers(std::span<const float> got, std::span<const float> expected, size_t vocab) {
  ASSERT_EQ(got.size(), expected.size());
  float worst = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - expected[i]));
  double divergence = 0;
  for (size_t row = 0; row < got.size(); row += vocab) {
    const auto p = expected.subspan(row, vocab), q = got.subspan(row, vocab);
    const auto normalizer = [](std::span<const float> logits) {
      const double top = *std::ranges::max_element(logits);
      double sum = 0;
      for (const float x : logits) sum += std::exp(x - top);
      return top + std::log(sum);
    };
    const double np = normalizer(p), nq = normalizer(q);
    for (size_t i = 0; i < vocab; ++i) divergence += std::exp(p[i] - np) * ((p[i] - np) - (q[i] - nq));
    std::vector<float> sorted(p.begin(), p.end());
    std::ranges::partial_sort(sorted, sorted.begin() + 2, std::greater<>());
    if (sorted[0] - sorted[1] <= worst) continue;
    EXPECT_EQ(std::ranges::max_element(p) - p.begin(), std::ranges::max_element(q) - q.begin());
  }
  divergence /= static_cast<double>(got.size() / vocab);
  EXPECT_LE(divergence, kMostDivergence);
  std::printf("  most |difference| %.2g, KL %.2g\n", static_cast<double>(worst), divergence);
}

// Slots come from DRAM in one of these ways. A GPU takes what is registered; the double also where nothing
// can be.
enum class Moves : uint8_t { registered, gathered };

// Over the agent that the program is built for.
void put_above(TierConfig& gpu, [[maybe_unused]] int64_t late, [[maybe_unused]] Moves moves) {
#if defined(TIERD_ON_GPU)
  gpu.kind = "gpu";
  gpu.settings = {{"backend", std::string("cuda"), "test"}};
#else
  gpu.kind = "double";
  gpu.settings = {{"late", late, "test"}};
  if (moves == Moves::gathered) gpu.settings.push_back({"lockable", std::string("0"), "test"});
#endif
}

class CudaGolden : public testing::Test {
 protected:
  static void SetUpTestSuite() { cache_ = use_test_cache(); }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }

  // All of it is computed there, from a memory of this capacity.
  static Config above(const Config& base, const std::string& capacity, int64_t late,
                      Moves moves = Moves::registered) {
    Config config = base;
    config.plugin_path = TIERD_DOUBLE_DIR;
    TierConfig& gpu = config.tier("gpu");
    put_above(gpu, late, moves);
    gpu.over = "dram";
    gpu.capacity = capacity;
    config.dense = "gpu";
    config.tier("dram").compute = false;
    return config;
  }
  static std::vector<float> logits_of(const Config& config, const Golden& golden, uint32_t chunk) {
    const auto logits = run_all_logits(config, golden.tokens, chunk);
    EXPECT_TRUE(logits.ok()) << logits.error().line();
    return logits.ok() ? *logits : std::vector<float>();
  }
  static void check(const Config& base, const Golden& golden, bool token_by_token) {
    const std::vector<float> expected = logits_of(base, golden, kChunk);
    const std::vector<float> resident = logits_of(above(base, "100%", 0), golden, kChunk);
    if (HasFailure()) return;
    expect_the_same_answers(resident, expected, golden.logits.size() / golden.tokens.size());
    // Streamed, in other chunks, and late: the same bits, whichever way neurons come.
    for (const Moves moves : {Moves::registered, Moves::gathered}) {
      Config streamed = above(base, "30%", 7, moves);
      streamed.cache = {"lru"};
      expect_the_same_bits(logits_of(streamed, golden, kChunk), resident);
    }
    if (token_by_token) expect_the_same_bits(logits_of(above(base, "60%", 3), golden, 1), resident);
  }

 private:
  static inline std::string cache_;
};

TEST_F(CudaGolden, SayWhatTheCpuSays) {
  for (const std::string& model : golden_names()) {
    SCOPED_TRACE(model);
    std::printf("%s\n", model.c_str());
    Config base = golden_config(model);
    base.kv = base.activations = "f32";
    check(base, read_golden(model), model.starts_with("gguf"));
    if (HasFailure()) return;
  }
}

// Batches are multiplied by tensor cores, of which the double has none: it multiplies bf16 in loops. Their
// bits are other ones, but the same resident and streamed.
TEST_F(CudaGolden, LargeBatchesSayWhatTheCpuSays) {
  for (const std::string model : {"gguf-llama-q4_0", "gguf-llama-q8_0", "llama2", "llama2-bf16", "llama2-f16",
                                  "llama-odd-sizes", "opt-f16", "phi", "qwen3-moe"}) {
    SCOPED_TRACE(model);
    std::printf("%s\n", model.c_str());
    const Golden golden = read_golden(model);
    Config base = golden_config(model);
    base.kv = base.activations = "f32";
    const auto by_tensor_cores = [&](const std::string& capacity, int64_t late) {
      Config config = above(base, capacity, late);
      config.tier("gpu").settings.push_back({"blas_rows", int64_t{4}, "test"});
      return config;
    };
    const std::vector<float> expected = logits_of(base, golden, kChunk);
    const std::vector<float> resident = logits_of(by_tensor_cores("100%", 0), golden, kChunk);
    if (HasFailure()) return;
    expect_the_same_answers(resident, expected, golden.logits.size() / golden.tokens.size());
    Config streamed = by_tensor_cores("30%", 7);
    streamed.cache = {"lru"};
    expect_the_same_bits(logits_of(streamed, golden, kChunk), resident);
    if (HasFailure()) return;
  }
}

class CudaConfigurations : public CudaGolden, public testing::WithParamInterface<std::string> {};

TEST_P(CudaConfigurations, SayWhatTheCpuSays) {
  for (const std::string model : {"gguf-llama-q4_0", "llama2", "mixtral", "opt-f16", "phi", "qwen3-moe"}) {
    const Golden golden = read_golden(model);
    Config base = configuration(GetParam(), golden_path(model), false);
    base.activations = "f32";
    if (run_all_logits(base, golden.tokens, kChunk).code() == Code::unsupported) continue;
    SCOPED_TRACE(model);
    std::printf("%s\n", model.c_str());
    const std::vector<float> expected = logits_of(base, golden, kChunk);
    const std::vector<float> got = logits_of(above(base, "50%", 2), golden, kChunk);
    if (HasFailure()) return;
    expect_the_same_answers(got, expected, golden.logits.size() / golden.tokens.size());
    // Some neurons are computed by DRAM, and every other step is measured.
    Config divided = above(base, "50%", 5, Moves::gathered);
    divided.tier("dram").compute = true;
    divided.balancer.name = "round-robin";
    divided.measure_every = 2;
    expect_the_same_answers(logits_of(divided, golden, kChunk), expected,
                            golden.logits.size() / golden.tokens.size());
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Configurations, CudaConfigurations,
                         testing::Values("hybrid", "llm-in-a-flash", "activeflow", "moe-streaming"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A pruned model gives the same bits dense and as bitmaps, resident and streamed, token by token and by
// chunks.
TEST_F(CudaGolden, APrunedModelGivesTheSameBitsCompressedAndExpanded) {
  struct Case {
    const char* model;
    Layout layout;
  };
  for (const Case& tried : {Case{"llama2", Layout::neuron}, Case{"llama2-bf16", Layout::row},
                            Case{"llama-odd-sizes", Layout::row}, Case{"opt-f16", Layout::row},
                            Case{"gguf-llama-q8_0", Layout::row}, Case{"qwen3-moe", Layout::row}}) {
    SCOPED_TRACE(tried.model);
    Golden golden = read_golden(tried.model);
    golden.tokens.resize(kChunk + 1);
    const TempFolder folder;
    auto opened = open_source(golden_path(tried.model));
    ASSERT_TRUE(opened.ok()) << opened.error().line();
    const ZeroedSource source(std::move(*opened), 50);
    Config dense = golden_config(tried.model), bitmap = dense;
    dense.model = folder.path() + "/dense";
    bitmap.model = folder.path() + "/bitmap";
    for (const Compression compression : {Compression::none, Compression::bitmap}) {
      const Status written = write_store(
          source, compression == Compression::none ? dense.model : bitmap.model,
          {.neuron_bytes = 16384, .layout = tried.layout, .compression = compression, .quiet = true});
      ASSERT_TRUE(written.ok()) << written.error().line();
    }
    const auto made = read_manifest(bitmap.model);
    ASSERT_TRUE(made.ok()) << made.error().line();
    EXPECT_GE(std::ranges::count(made->sites, Compression::bitmap, &StoredSite::compression),
              made->config.n_layers);
    const std::vector<float> expected = logits_of(above(dense, "100%", 0), golden, kChunk);
    expect_the_same_bits(logits_of(above(bitmap, "100%", 0), golden, kChunk), expected);
    expect_the_same_bits(logits_of(above(bitmap, "60%", 3), golden, 1), expected);
#if !defined(TIERD_ON_GPU)  // that machine may lack libzstd
    Config zstd = golden_config(tried.model);
    zstd.model = folder.path() + "/zstd";
    WriteOptions by_zstd{.neuron_bytes = 16384, .layout = tried.layout, .quiet = true};
    ASSERT_TRUE(choose_compression("zstd", plugin_path(zstd), {}, "test", by_zstd).ok());
    ASSERT_TRUE(write_store(source, zstd.model, by_zstd).ok());
    expect_the_same_bits(logits_of(above(zstd, "60%", 3), golden, kChunk), expected);
#endif
    for (const char* capacity : {"100%", "60%"}) {
      Config expanded = above(bitmap, capacity, 3);
      expanded.tier("gpu").compressed = "expanded";
      expect_the_same_bits(logits_of(expanded, golden, 1), expected);
    }
    if (HasFailure()) return;
  }
}

// A model that is stored in several encodings. Which of them a neuron is used in is decided above, so the
// device has slots of several sizes and a layer's products in several encodings; `atu` moves a neuron to
// another slot when it changes its edition.
TEST_F(CudaGolden, EditionsGiveTheSameBitsResidentAndStreamed) {
  struct Case {
    const char* model;
    std::vector<Encoding> editions;
    const char* ratios;
  };
  for (const Case& tried : {Case{"llama2-f16", {Encoding::q8_0, Encoding::q4_0}, "25/25/50"},
                            Case{"opt", {Encoding::f16, Encoding::q8_0, Encoding::q4_0}, "10/20/30/40"},
                            Case{"gguf-qwen2-q8_0", {Encoding::q4_0}, "50/50"}}) {
    SCOPED_TRACE(tried.model);
    std::printf("%s\n", tried.model);
    const Golden golden = read_golden(tried.model);
    const TempFolder folder;
    Config mixed =
        store_of_editions(tried.model, folder.path() + "/editions", Layout::neuron, tried.editions);
    mixed.kv = mixed.activations = "f32";
    use_random_ranks(mixed);
    mix(mixed, tried.ratios);
    if (HasFailure()) return;

    // A batch uses the union of its rows' neurons: chunks are compared with chunks alone.
    const std::vector<float> expected = logits_of(mixed, golden, 1);
    const std::vector<float> resident = logits_of(above(mixed, "100%", 0), golden, 1);
    const std::vector<float> batches = logits_of(above(mixed, "100%", 0), golden, kChunk);
    if (HasFailure()) return;
    expect_the_same_answers(resident, expected, golden.logits.size() / golden.tokens.size());
    for (const auto& [cache, moves] :
         {std::pair("atu", Moves::registered), std::pair("lru", Moves::gathered)}) {
      SCOPED_TRACE(cache);
      Config streamed = above(mixed, "50%", 3, moves);
      streamed.cache = {cache};
      streamed.tier("dram").cache.name = "layers";
      expect_the_same_bits(logits_of(streamed, golden, 1), resident);
      expect_the_same_bits(logits_of(streamed, golden, kChunk), batches);
    }
    if (HasFailure()) return;
  }
}

// The arena below gives pages back and gets others. What is moved from there is read where it lies all the
// time.
TEST_F(CudaGolden, ABudgetThatMovesGivesTheSameBits) {
  const Golden golden = read_golden("llama2");
  Config config = above(golden_config("llama2"), "40%", 3);
  config.cache = {"lru"};
  const std::vector<float> expected = logits_of(config, golden, 1);
  RuntimeOptions options;
  options.quiet = true;
  options.fit = true;
  options.logit_rows = 1;
  auto made = make_runtime(config, options);
  ASSERT_TRUE(made.ok()) << made.error().line();
  Runtime& runtime = **made;
  ASSERT_TRUE(runtime.load().ok());
  std::vector<float> logits;
  for (uint32_t i = 0; i < golden.tokens.size(); ++i) {
    for (const auto& [token, capacity] :
         {std::pair(3, "30%"), std::pair(6, "70%"), std::pair(9, "1"), std::pair(12, "all")}) {
      if (i != static_cast<uint32_t>(token)) continue;
      const Status changed = runtime.set_capacity(capacity, true, 0);
      ASSERT_TRUE(changed.ok()) << changed.error().line();
    }
    ASSERT_TRUE(feed(runtime.engine(), golden.tokens, i, 1, logits).ok());
  }
  expect_the_same_bits(logits, expected);
  ASSERT_TRUE(runtime.engine().drain().ok());
  EXPECT_GT(runtime.move_counts(1).read_in_place, 0U);
  EXPECT_GT(runtime.run_counts(1).captured, 0U);
  EXPECT_EQ(runtime.move_counts(1).gathered, 0U);
}

// Straight from the store into the device's memory: staged, by cuFile, and by one that fails now and then.
TEST_F(CudaGolden, ReadsDirectlyGiveTheSameBits) {
  for (const std::string model : {"gguf-llama-q4_0", "llama2", "opt-f16"}) {
    SCOPED_TRACE(model);
    const Golden golden = read_golden(model);
    Config base = golden_config(model);
    base.kv = base.activations = "f32";
    const std::vector<float> expected = logits_of(above(base, "100%", 0), golden, kChunk);
#if defined(TIERD_ON_GPU)
    const std::vector<std::string> libraries = {""};
#else
    const std::string folder = TIERD_FAKE_CUFILE_DIR;
    const std::vector<std::string> libraries = {"/nowhere/libcufile.so.0", folder + "/sound.so",
                                                folder + "/fails.so"};
#endif
    for (const std::string& library : libraries) {
      SCOPED_TRACE(library);
      Config direct = above(base, "30%", 7);
      direct.tier("dram").capacity = "30%";
      direct.tier("gpu").settings.push_back({"direct", true, "test"});
      if (!library.empty()) direct.tier("gpu").settings.push_back({"cufile", library, "test"});
      expect_the_same_bits(logits_of(direct, golden, kChunk), expected);
      direct.cache = {"layer-map"};
      direct.tier("gpu").thread = "own";
      expect_the_same_bits(logits_of(direct, golden, 1), expected);
      if (HasFailure()) return;
    }
  }
}

#if !defined(TIERD_ON_GPU)
// A device with too little memory for what it is given is refused with a line that names the key, before
// anything runs or when the first neurons come; one with more gives the same bits.
TEST_F(CudaGolden, ADeviceWithoutRoomSaysSo) {
  const Golden golden = read_golden("llama2");
  const Config base = golden_config("llama2");
  const std::vector<float> expected = logits_of(above(base, "100%", 1), golden, kChunk);
  uint32_t refused = 0, enough = 0;
  for (uint64_t kilobytes = 64; kilobytes <= 1 << 16; kilobytes += kilobytes / 2) {
    SCOPED_TRACE(kilobytes);
    Config config = above(base, "100%", 1);
    config.tier("gpu").settings.push_back({"memory", std::to_string(kilobytes << 10), "test"});
    testing::internal::CaptureStderr();
    const auto logits = run_all_logits(config, golden.tokens, kChunk);
    const std::string said = testing::internal::GetCapturedStderr();
    if (logits.ok()) {
      ++enough;
      expect_the_same_bits(*logits, expected);
    } else {
      ++refused;
      EXPECT_EQ(enough, 0U);
      EXPECT_NE((logits.error().line() + said).find("tiers.gpu.capacity: "), std::string::npos)
          << logits.error().line() << said;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 0U);
  EXPECT_GT(enough, 0U);
}

// A run whose device is lost ends in a line that names it.
TEST_F(CudaGolden, ALostDeviceEndsTheRun) {
  Config config = above(golden_config("llama2"), "50%", 1);
  for (const int64_t look : {1, 40, 200}) {
    config.tier("gpu").settings = {{"late", int64_t{1}, "test"}, {"lost_at_look", look, "test"}};
    testing::internal::CaptureStderr();
    const auto logits = run_all_logits(config, read_golden("llama2").tokens, kChunk);
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_FALSE(logits.ok());
    EXPECT_NE(logits.error().line().find("not there any more"), std::string::npos) << logits.error().line();
    EXPECT_NE(said.find("is lost: cudaErrorECCUncorrectable"), std::string::npos) << said;
  }
}
#endif

}  // namespace
}  // namespace tierd
