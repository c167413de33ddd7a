// Compares layers that are computed for all tokens of a window at once with the naive reference, for every
// dense golden model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/store/source.h"
#include "tests/lab/prune/golden_path.h"
#include "tests/lab/prune/random_matrix.h"
#include "tests/model/reference.h"
#include "tests/store/memory_source.h"
#include "tools/lab/prune/layer_forward.h"
#include "tools/lab/prune/prune_model.h"
#include "tools/lab/synth/synthetic_source.h"

namespace tierd {
namespace {

// Computes the norm and head after the last layer by their formulas.
std::vector<float> logits_of(const TensorSource& source, std::span<const float> x) {
  const ModelConfig& config = source.config();
  const auto read = [&](const std::string& name) {
    const TensorInfo* tensor = source.find(name);
    return tensor == nullptr ? std::vector<float>() : *source.read_f32(*tensor);
  };
  const std::vector<float> weight = read("out_norm"), bias = read("out_norm.bias");
  double mean = 0, squares = 0;
  for (const float value : x) mean += config.norm == Norm::layer ? value / static_cast<double>(x.size()) : 0;
  for (const float value : x) squares += (value - mean) * (value - mean) / static_cast<double>(x.size());
  std::vector<float> normed(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    normed[i] = static_cast<float>((x[i] - mean) / std::sqrt(squares + config.norm_eps) * weight[i] +
                                   (bias.empty() ? 0 : bias[i]));
  }
  const std::vector<float> head = read(config.tied_embeddings ? "embed" : "head");
  std::vector<float> logits = read("head.bias");
  logits.resize(config.vocab_size);
  for (size_t i = 0; i < head.size(); ++i) logits[i / x.size()] += head[i] * normed[i % x.size()];
  return logits;
}

void compare(const TensorSource& source, uint32_t tokens) {
  const ModelConfig& config = source.config();
  Random random(3);
  const std::vector<uint32_t> window = random_windows(random, 1, tokens, config.vocab_size).front();
  MatrixTeam team(2);
  auto hidden = embed(source, window);
  ASSERT_TRUE(hidden.ok()) << hidden.error().line();
  std::vector<LayerInput> seen;
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    auto weights = read_layer(source, layer);
    ASSERT_TRUE(weights.ok()) << weights.error().line();
    LayerForward(config, *weights, team).run(*hidden, [&](LayerInput input, const TokenRows& x) {
      seen.push_back(input);
      EXPECT_EQ(x.count, tokens);
      EXPECT_EQ(x.width, weights->width(input));
    });
  }
  EXPECT_EQ(seen.size(), kLayerInputs.size() * config.n_layers);
  auto reference = Reference::load(source);
  ASSERT_TRUE(reference.ok()) << reference.error().line();
  for (uint32_t t = 0; t < tokens; ++t) {
    const std::span<const float> expected = reference->forward(window[t], t);
    const std::vector<float> logits = logits_of(source, hidden->row(t));
    float largest = 0;
    for (const float logit : expected) largest = std::max(largest, std::fabs(logit));
    for (size_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(logits[i], expected[i], 1e-4f * largest) << "token " << t << ", logit " << i;
  }
}

TEST(LayerForward, ComputesWhatTheReferenceComputes) {
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TIERD_SOURCE_DIR "/tests/golden/models")) {
    const std::string path = golden_path(entry.path());
    SCOPED_TRACE(path);
    const auto source = open_source(path);
    ASSERT_TRUE(source.ok()) << source.error().line();
    if (!check_prunable(**source, {}).ok()) continue;
    compare(**source, 20);
    ++models;
  }
  EXPECT_GT(models, 20);
}

TEST(LayerForward, AlsoOfShapesThatNoGroupOfRowsDivides) {
  compare(MemorySource(small_opt(), Encoding::f32, 2), 1);
  compare(MemorySource(small_opt(), Encoding::f16, 3), 32);
  ModelConfig config = small_llama();
  config.d_ff = 97;
  config.sliding_window = 5;
  config.qk_norm = config.qk_norm_wide = true;
  config.qkv_clip = 0.5f;
  compare(MemorySource(config, Encoding::f32, 4), 40);
  config.qk_norm_wide = false;
  config.norm = Norm::layer;  // without biases
  compare(MemorySource(config, Encoding::f32, 5), 40);
}

}  // namespace
}  // namespace tierd
