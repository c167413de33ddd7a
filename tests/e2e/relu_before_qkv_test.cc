// Models with a ReLU before q, k and v give the results of the naive forward in every layout, and Hermes
// moves the neurons of their attention as it moves those of feed-forward networks.
#include <gtest/gtest.h>

#include <cmath>

#include "core/store/writer.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/shipped_configuration.h"
#include "tests/model/reference.h"
#include "tools/lab/synth/synthetic_source.h"

namespace tierd {
namespace {

constexpr uint32_t kTokens = 24;

ModelConfig shape(bool gated) {
  ModelConfig c;
  c.architecture = c.name = gated ? "llama" : "opt";
  c.n_layers = 3;
  c.d_model = 64;
  c.n_heads = 8;
  c.n_kv_heads = gated ? 4 : 8;
  c.head_dim = 8;
  c.d_ff = 160;
  c.vocab_size = 300;
  c.context_length = 64;
  c.activation = Activation::relu;
  c.gated = gated;
  c.qkv_relu = true;
  if (gated) return c;
  c.norm = Norm::layer;
  c.position = PositionKind::learned;
  c.position_offset = 2;
  c.qkv_bias = c.o_bias = c.ffn_bias = c.norm_bias = true;
  return c;
}

class ReluBeforeQkv : public testing::TestWithParam<bool> {
 protected:
  ReluBeforeQkv() {
    auto source = SyntheticSource::make(shape(GetParam()), Encoding::f16, 3);
    EXPECT_TRUE(source.ok()) << source.error().line();
    source_ = std::move(*source);
    for (const auto& [layout, name] : {std::pair(Layout::row, "row"), std::pair(Layout::neuron, "neuron"),
                                       std::pair(Layout::channel_group, "channel")}) {
      const Status written = write_store(*source_, store(name), {.layout = layout, .quiet = true});
      EXPECT_TRUE(written.ok()) << written.error().line();
    }
    for (uint32_t i = 0; i < kTokens; ++i) tokens_.push_back(7 + i * 31 % 280);
  }
  std::string store(const std::string& name) const { return folder_.path() + "/" + name; }

  std::vector<float> naive() const {
    auto model = Reference::load(*source_);
    EXPECT_TRUE(model.ok()) << model.error().line();
    std::vector<float> logits;
    for (uint32_t i = 0; i < kTokens; ++i) {
      const auto of_token = model->forward(tokens_[i], i);
      logits.insert(logits.end(), of_token.begin(), of_token.end());
    }
    return logits;
  }
  std::vector<float> run(Config config, const std::string& name, uint32_t chunk = 5) const {
    config.model = store(name);
    config.context = kTokens;
    config.threads = 1;
    config.bind = false;
    config.kv = "f32";
    const auto logits = run_all_logits(config, tokens_, chunk);
    EXPECT_TRUE(logits.ok()) << logits.error().line();
    return logits.ok() ? *logits : std::vector<float>();
  }
  static void expect_near(const std::vector<float>& logits, const std::vector<float>& expected) {
    ASSERT_EQ(logits.size(), expected.size());
    float most = 0, worst = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      most = std::max(most, std::fabs(expected[i]));
      worst = std::max(worst, std::fabs(logits[i] - expected[i]));
    }
    EXPECT_LT(worst, 1e-3f * most);
  }

  TempFolder folder_;
  std::unique_ptr<SyntheticSource> source_;
  std::vector<uint32_t> tokens_;
};

TEST_P(ReluBeforeQkv, EveryLayoutSaysWhatTheNaiveForwardSays) {
  const std::vector<float> expected = naive();
  for (const char* layout : {"row", "neuron", "channel"}) {
    SCOPED_TRACE(layout);
    for (const uint32_t chunk : {1u, 5u}) expect_near(run({}, layout, chunk), expected);
  }
}

TEST_P(ReluBeforeQkv, StreamedItSaysTheSame) {
  const std::vector<float> resident = run({}, "neuron");
  Config config;
  config.tier("dram").capacity = "40%";
  for (const char* cache : {"lru", "none"}) {
    config.cache.name = cache;
    expect_the_same_bits(run(config, "neuron"), resident);
  }
}

TEST_P(ReluBeforeQkv, HermesDividesItBetweenGpuAndDimms) {
  Config config = configuration("hermes", store("neuron"), true);
  config.tier("gpu").capacity = "70%";
  config.tier("ndp").count = 4;
  expect_near(run(config, "neuron"), naive());
}

INSTANTIATE_TEST_SUITE_P(, ReluBeforeQkv, testing::Bool(),
                         [](const auto& test) { return std::string(test.param ? "Gated" : "Plain"); });

TEST(ReluBeforeQkvShape, IsRefusedWhereTheNetworkComputesFromTheSame) {
  ModelConfig config = shape(false);
  config.parallel = true;
  config.ffn_norm = false;
  const Status status = validate(config, "m.toml");
  EXPECT_EQ(status.error().line(),
            "m.toml: q, k and v have a ReLU, which is not supported where the FFN has the same input");
}

}  // namespace
}  // namespace tierd
