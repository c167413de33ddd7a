// Compares the logits of whole runs with those of Hugging Face transformers.
#include <gtest/gtest.h>

#include <cmath>

#include "core/formats/gguf_writer.h"
#include "tests/e2e/golden_model.h"

namespace tierd {
namespace {

enum class Precision { f32, half, quantized };

Precision precision_of(const std::string& name) {
  if (name.ends_with("f16")) return Precision::half;  // also bf16
  if (name.ends_with("_0") || name.ends_with("_1") || name.ends_with("mxfp4")) return Precision::quantized;
  return Precision::f32;
}

// Returns the mean over positions of KL(golden || ours).
double mean_kl(std::span<const float> golden, std::span<const float> ours, size_t vocab) {
  const auto log_softmax = [&](std::span<const float> row) {
    const double top = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const float x : row) sum += std::exp(x - top);
    return top + std::log(sum);
  };
  double kl = 0;
  const size_t rows = golden.size() / vocab;
  for (size_t r = 0; r < rows; ++r) {
    const auto p = golden.subspan(r * vocab, vocab);
    const auto q = ours.subspan(r * vocab, vocab);
    const double np = log_softmax(p);
    const double nq = log_softmax(q);
    for (size_t i = 0; i < vocab; ++i) kl += std::exp(p[i] - np) * ((p[i] - np) - (q[i] - nq));
  }
  return kl / static_cast<double>(rows);
}

class GoldenRun : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { cache_ = use_test_cache(); }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }
  static inline std::string cache_;

  void agrees(Config config) const {
    const Golden golden = read_golden(GetParam());
    const Precision precision = precision_of(GetParam());
    if (precision == Precision::f32) config.kv = "f32";
    const auto logits = run_all_logits(config, golden.tokens, kGoldenTokens);
    ASSERT_TRUE(logits.ok()) << logits.error().line();
    ASSERT_EQ(logits->size(), golden.logits.size());
    float top = 0, worst = 0;
    for (size_t i = 0; i < logits->size(); ++i) {
      top = std::max(top, std::fabs(golden.logits[i]));
      worst = std::max(worst, std::fabs(golden.logits[i] - (*logits)[i]));
    }
    const double kl = mean_kl(golden.logits, *logits, golden.logits.size() / kGoldenTokens);
    RecordProperty("max_delta_over_max_logit", std::to_string(worst / top));
    RecordProperty("mean_kl", std::to_string(kl));
    std::printf("  max|delta|/max|logit| %.2g, KL %.2g\n", static_cast<double>(worst / top), kl);
    switch (precision) {
      case Precision::f32:
        EXPECT_LE(worst, 1e-4f * top);
        break;
      case Precision::half:
        EXPECT_LE(kl, 1e-4);
        break;
      case Precision::quantized:
        EXPECT_LE(kl, 1e-3);
        break;
    }
  }
};

TEST_P(GoldenRun, ResidentAgreesWithTransformers) {
  agrees(golden_config(GetParam()));
}

// Models that GGUF can hold, written as GGUF, where the rows of q and k have another order.
TEST_P(GoldenRun, AsAGgufFileItAgreesWithTransformers) {
  const auto source = open_source(golden_path(GetParam()));
  ASSERT_TRUE(source.ok()) << source.error().line();
  if (golden_path(GetParam()).ends_with(".gguf") || !check_gguf(**source).ok())
    GTEST_SKIP() << "is one, or cannot be one";
  const std::string path = cache_ + "-" + GetParam() + ".gguf";
  const Status written = write_gguf(**source, path, true);
  ASSERT_TRUE(written.ok()) << written.error().line();
  Config config = golden_config(GetParam());
  config.model = path;
  agrees(config);
  std::filesystem::remove(path);
}

TEST_P(GoldenRun, ResidentInBundlesAgreesWithTransformers) {
  if (precision_of(GetParam()) == Precision::quantized)
    GTEST_SKIP() << "columns of block encodings cannot be bundled";
  if (golden_is_mixture(GetParam())) GTEST_SKIP() << "experts stay whole";
  Config config = golden_config(GetParam());
  config.layout = "neuron";
  agrees(config);
}

TEST_P(GoldenRun, StreamedInPiecesOfBundlesAgreesWithTransformers) {
  if (precision_of(GetParam()) == Precision::quantized)
    GTEST_SKIP() << "columns of block encodings cannot be bundled";
  if (golden_is_mixture(GetParam())) GTEST_SKIP() << "experts stay whole";
  Config config = golden_config(GetParam());
  config.layout = "neuron";
  config.bundling = "none";
  config.cache.name = "none";
  config.tier("dram").capacity = "50%";
  agrees(config);
}

TEST_P(GoldenRun, ResidentInChannelsAgreesWithTransformers) {
  if (precision_of(GetParam()) == Precision::quantized)
    GTEST_SKIP() << "block encodings are encoded anew along the columns";
  Config config = golden_config(GetParam());
  config.layout = "channel-group";
  agrees(config);
}

TEST_P(GoldenRun, ExpertsInChannelsAgreeWithTransformers) {
  if (!golden_is_mixture(GetParam()) || precision_of(GetParam()) == Precision::quantized)
    GTEST_SKIP() << "not of experts, or encoded anew along the columns";
  Config config = golden_config(GetParam());
  config.layout = "channel-group";
  config.experts = "channels";
  agrees(config);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenRun, testing::ValuesIn(golden_names()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace tierd
