// SmoothQuant must not change the model's function, and must give the published scales.
#include "tools/lab/prune/smooth.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/store/source.h"
#include "tests/base/temp_folder.h"
#include "tests/lab/prune/golden_path.h"
#include "tests/lab/prune/random_matrix.h"
#include "tests/model/reference.h"
#include "tools/lab/prune/prune_model.h"

namespace tierd {
namespace {

TEST(Smooth, ScalesAreThePublishedOnes) {
  Random random(1);
  constexpr uint32_t kCols = 5;
  LinearWeights a{"a", 3, kCols, random_values(random, 3 * kCols), {}};
  LinearWeights b{"b", 2, kCols, random_values(random, 2 * kCols), {}};
  for (uint32_t r = 0; r < 3; ++r) a.weight[r * kCols + 4] = 0;
  for (uint32_t r = 0; r < 2; ++r) b.weight[r * kCols + 4] = 0;
  b.weight[1] = 0;
  NormWeights norm{"norm", random_values(random, kCols), random_values(random, kCols)};
  const std::vector<float> largest = {4, 0.5f, 9, 0, 3};
  const LinearWeights was_a = a, was_b = b;
  const NormWeights was = norm;
  LinearWeights* const both[] = {&a, &b};
  smooth(norm, both, largest, 0.75f);
  for (uint32_t j = 0; j < kCols; ++j) {
    float most = 0;
    for (uint32_t r = 0; r < 3; ++r) most = std::max(most, std::fabs(was_a.weight[r * kCols + j]));
    for (uint32_t r = 0; r < 2; ++r) most = std::max(most, std::fabs(was_b.weight[r * kCols + j]));
    const double s = j < 3 ? std::pow(largest[j], 0.75) / std::pow(most, 0.25) : 1;  // 3, 4: zero
    EXPECT_NEAR(norm.weight[j], was.weight[j] / s, 1e-5);
    EXPECT_NEAR(norm.bias[j], was.bias[j] / s, 1e-5);
    for (uint32_t r = 0; r < 3; ++r)
      EXPECT_NEAR(a.weight[r * kCols + j], was_a.weight[r * kCols + j] * s, 1e-5 * (1 + s));
    for (uint32_t r = 0; r < 2; ++r)
      EXPECT_NEAR(b.weight[r * kCols + j], was_b.weight[r * kCols + j] * s, 1e-5 * (1 + s));
  }
  EXPECT_EQ(b.weight[1], 0);
}

// The models cover every way in which norms and operators are connected.
TEST(Smooth, TheModelComputesWhatItDid) {
  for (const char* name : {"llama2", "opt", "falcon", "falcon-grouped", "falcon-serial", "phi", "persimmon",
                           "qwen2", "llama-fatrelu"}) {
    SCOPED_TRACE(name);
    const auto source = open_source(golden_model(name));
    ASSERT_TRUE(source.ok()) << source.error().line();
    const ModelConfig& config = (*source)->config();
    Random random(2);
    const auto windows = random_windows(random, 3, 24, config.vocab_size);
    const TempFolder temp;
    PruneOptions options;
    options.smooth = 0.5f;
    options.quiet = true;
    const auto smoothed = prune_model(**source, windows, options, temp.path() + "/out");
    ASSERT_TRUE(smoothed.ok()) << smoothed.error().line();
    const auto before = (*source)->read_f32(*(*source)->find("layers.0.q"));
    EXPECT_NE(*before, *(*smoothed)->read_f32(*(*smoothed)->find("layers.0.q")));
    auto expected = Reference::load(**source), found = Reference::load(**smoothed);
    ASSERT_TRUE(expected.ok() && found.ok());
    for (uint32_t t = 0; t < windows[0].size(); ++t) {
      const auto a = expected->forward(windows[0][t], t), b = found->forward(windows[0][t], t);
      float largest = 0;
      for (const float logit : a) largest = std::max(largest, std::fabs(logit));
      for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-4f * largest) << t << " " << i;
    }
  }
}

}  // namespace
}  // namespace tierd
