// Compares a small planted model in a real forward pass with the planted profile.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/lab/planted/planted_forward.h"
#include "tests/lab/planted/small_planted.h"
#include "tests/model/reference.h"
#include "tools/lab/planted/prompt.h"

namespace tierd {
namespace {

constexpr uint32_t kDocuments = 4;
constexpr uint32_t kTokens = 80;
constexpr uint32_t kSkipped = 16;  // the first tokens have little to attend to

// Means over the tokens of all documents, for one layer.
struct Statistics {
  double active = 0;
  double predicted = 0;
  double false_negatives = 0;  // share of the active
  double false_positives = 0;  // share of the inactive
  double union_of_5 = 0;       // predicted in a token or the 4 before it
  double added = 0;            // predicted in a token, but in none of the 4 before it
};

Statistics statistics_of(const LayerSets& sets) {
  constexpr uint32_t kBefore = 4;
  const size_t n = sets.active[0].size();
  const auto neurons = static_cast<double>(n);
  double tokens = 0, with_window = 0, active = 0, predicted = 0, missed = 0, in_vain = 0, in_union = 0,
         added = 0;
  for (uint32_t text = 0; text < kDocuments; ++text) {
    std::vector<int> seen(n, -1000);  // the token that last predicted the neuron
    for (uint32_t t = kSkipped; t < kTokens; ++t) {
      const uint32_t row = text * kTokens + t;
      const bool windowed = t >= kSkipped + kBefore;
      tokens += 1;
      if (windowed) with_window += 1;
      for (size_t i = 0; i < n; ++i) {
        const bool a = sets.active[row][i];
        const bool p = sets.predicted[row][i];
        active += a;
        predicted += p;
        missed += a && !p;
        in_vain += p && !a;
        const bool recent = static_cast<int>(t) - seen[i] <= static_cast<int>(kBefore);
        if (windowed) {
          in_union += p || recent;
          added += p && !recent;
        }
        if (p) seen[i] = static_cast<int>(t);
      }
    }
  }
  const double all = tokens * neurons;
  return {active / all,
          predicted / all,
          missed / active,
          in_vain / (all - active),
          in_union / (with_window * neurons),
          added / (with_window * neurons)};
}

class PlantedStatistics : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    source_ = make_planted(small_planted_shape());
    texts_ = *planted_prompts(source_->config(), 1, kDocuments, kTokens);
    pass_ = planted_pass(*source_, texts_);
  }
  static void TearDownTestSuite() {
    pass_ = {};
    source_.reset();
  }

  static inline std::unique_ptr<PlantedSource> source_;
  static inline std::vector<std::vector<uint32_t>> texts_;
  static inline PlantedPass pass_;
};

TEST_F(PlantedStatistics, ThePassIsTheReferences) {
  auto reference = Reference::load(*source_);
  ASSERT_TRUE(reference.ok()) << reference.error().line();
  for (uint32_t t = 0; t < 3; ++t) {
    const std::span<const float> logits = reference->forward(texts_[0][t], t);
    for (uint32_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(pass_.logits.at(t, i), logits[i], 0.5);
  }
}

// The tolerances are wider than the study's (32 layers of 16384 neurons, 4096 wide): thresholds are drawn for
// 4 layers of 8192 neurons, and at a width of 512 the inputs of neighbouring tokens are a little less alike.
// The study has 24.8 % and 2.48 % at this width.
TEST_F(PlantedStatistics, AreThoseOfTheProfile) {
  const PlantedProfile profile = flash_profile();
  const auto shares = *active_shares(profile, source_->config().n_layers);
  Statistics mean;
  for (uint32_t layer = 0; layer < shares.size(); ++layer) {
    SCOPED_TRACE(layer);
    const Statistics s = statistics_of(pass_.layers[layer]);
    EXPECT_NEAR(s.active / shares[layer], 1, 0.12);
    EXPECT_NEAR(s.false_negatives, profile.false_negatives, 0.006);
    EXPECT_NEAR(s.false_positives, profile.false_positives, 0.005);
    const auto n = static_cast<double>(shares.size());
    mean.active += s.active / n;
    mean.predicted += s.predicted / n;
    mean.union_of_5 += s.union_of_5 / n;
    mean.added += s.added / n;
  }
  EXPECT_NEAR(mean.active / profile.mean, 1, 0.06);
  EXPECT_NEAR(mean.predicted, 0.099, 0.005);
  EXPECT_NEAR(mean.union_of_5, 0.241, 0.012);
  EXPECT_NEAR(mean.added, 0.0240, 0.0020);
}

// The predictor is as good as its rank: with 64 of its 128 features and as many neurons predicted, the study
// misses 17 % of the active.
TEST_F(PlantedStatistics, HalfOfTheFeaturesMissMore) {
  constexpr uint32_t kLayer = 1;
  constexpr uint32_t kKept = 63;
  std::vector<float> active_scores;
  std::vector<float> all_scores;
  size_t predicted = 0;
  const LayerSets& sets = pass_.layers[kLayer];
  const Matrix scores = predictor_scores(*source_, kLayer, sets.normed, kKept);
  for (uint32_t row = 0; row < scores.rows; ++row) {
    if (row % kTokens < kSkipped) continue;
    for (uint32_t i = 0; i < scores.cols; ++i) {
      all_scores.push_back(scores.at(row, i));
      if (sets.active[row][i]) active_scores.push_back(scores.at(row, i));
      predicted += sets.predicted[row][i];
    }
  }
  const auto margin = all_scores.begin() + static_cast<std::ptrdiff_t>(predicted);
  std::nth_element(all_scores.begin(), margin, all_scores.end(), std::greater());
  const auto missed = std::ranges::count_if(active_scores, [&](float score) { return score <= *margin; });
  EXPECT_NEAR(static_cast<double>(missed) / static_cast<double>(active_scores.size()), 0.17, 0.03);
}

TEST_F(PlantedStatistics, TheNextTokenIsTheNextId) {
  const uint64_t words = source_->config().vocab_size;
  for (uint32_t row = 0; row < kDocuments * kTokens; ++row) {
    const auto logits = std::span(pass_.logits.values).subspan(row * words, words);
    const auto highest = std::max_element(logits.begin(), logits.end()) - logits.begin();
    ASSERT_EQ(static_cast<uint32_t>(highest), texts_[row / kTokens][row % kTokens] + 1) << row;
  }
}

}  // namespace
}  // namespace tierd
