// Compares whole runs with the backend `cuda` with those on the CPU: golden models, resident and streamed, in
// every cut, and devices that have too little memory or are lost.
#include "tests/gpu/cuda_golden.h"
#include "tests/e2e/shipped_configuration.h"

namespace tierd {
namespace {

TEST_F(CudaGolden, SayWhatTheCpuSays) {
  for (const std::string& model : golden_runs()) {
    SCOPED_TRACE(model);
    std::printf("%s\n", model.c_str());
    Config base = golden_config(model);
    base.kv = base.activations = "f32";
    check(base, read_golden(model), model.starts_with("gguf"));
    if (HasFailure()) return;
  }
}

// Batches use tensor cores; the double multiplies bf16 in loops instead. Their bits differ from those of
// other kernels, but are the same resident and streamed.
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
    // DRAM computes some of the neurons, and every other step is measured.
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

// The arena below gives pages back and gets others. All moves read registered memory throughout.
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

#if !defined(TIERD_ON_GPU)
// A device with too little memory is refused with a line that names the key, before the run or when the first
// neurons arrive. A device with enough memory gives the same bits.
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

// A run whose device is lost ends with a line that names the device.
TEST_F(CudaGolden, ALostDeviceEndsTheRun) {
  Config config = above(golden_config("llama2"), "50%", 1);
  for (const int64_t look : {1, 40, 200}) {
    config.tier("gpu").settings = {{"late", int64_t{1}, "test"}, {"lost_at_look", look, "test"}};
    testing::internal::CaptureStderr();
    const auto logits = run_all_logits(config, read_golden("llama2").tokens, kChunk);
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_FALSE(logits.ok());
    EXPECT_NE(logits.error().line().find("is lost"), std::string::npos) << logits.error().line();
    EXPECT_NE(said.find("is lost: cudaErrorECCUncorrectable"), std::string::npos) << said;
  }
}
#endif

}  // namespace
}  // namespace tierd
