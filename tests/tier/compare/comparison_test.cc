#include "tools/tier/compare/comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"
#include "tools/evaluation/text_windows.h"

namespace tierd {
namespace {

TEST(Loss, OfEqualLogitsIsNothing) {
  Loss loss;
  const std::vector<float> logits = {1, -2, 0.5f};
  loss.add(logits, logits, 1);
  EXPECT_EQ(loss.tokens(), 1u);
  EXPECT_EQ(loss.mean_divergence(), 0);
  EXPECT_EQ(loss.largest_difference(), 0);
  EXPECT_EQ(loss.reference_perplexity(), loss.subject_perplexity());
}

TEST(Loss, IsThatOfThePlainFormulas) {
  Random random(1);
  Loss loss;
  constexpr int kTokens = 50, kVocab = 9;
  double nats[2] = {0, 0}, divergence = 0, most = 0;
  float difference = 0;
  for (int t = 0; t < kTokens; ++t) {
    std::vector<float> logits[2];
    std::vector<double> p[2];
    for (int m = 0; m < 2; ++m) {
      double sum = 0;
      for (int i = 0; i < kVocab; ++i) logits[m].push_back(5 * random.symmetric());
      for (const float x : logits[m]) sum += std::exp(double{x});
      for (const float x : logits[m]) p[m].push_back(std::exp(double{x}) / sum);
    }
    const uint32_t next = random.below(kVocab);
    double of = 0;
    for (int i = 0; i < kVocab; ++i) {
      of += p[0][i] * std::log(p[0][i] / p[1][i]);
      difference = std::max(difference, std::abs(logits[0][i] - logits[1][i]));
    }
    for (int m = 0; m < 2; ++m) nats[m] -= std::log(p[m][next]);
    divergence += of;
    most = std::max(most, of);
    loss.add(logits[0], logits[1], next);
  }
  EXPECT_NEAR(loss.reference_perplexity(), std::exp(nats[0] / kTokens), 1e-6);
  EXPECT_NEAR(loss.subject_perplexity(), std::exp(nats[1] / kTokens), 1e-6);
  EXPECT_NEAR(loss.mean_divergence(), divergence / kTokens, 1e-9);
  EXPECT_NEAR(loss.divergence_quantile(1), most, 1e-9);
  EXPECT_LE(loss.divergence_quantile(0.5), most);
  EXPECT_EQ(loss.largest_difference(), difference);
}

// A tokenizer with one token a letter, and BOS.
class Letters : public Tokenizer {
 public:
  Letters() : Tokenizer(Vocab()) {}
  std::vector<uint32_t> encode(std::string_view text, bool add_special, bool) const override {
    std::vector<uint32_t> tokens;
    if (add_special) tokens.push_back(0);
    tokens.insert(tokens.end(), text.begin(), text.end());
    return tokens;
  }
  std::string piece(uint32_t token, bool) const override { return std::string(1, static_cast<char>(token)); }
  bool drops_first_space() const override { return false; }
};

TEST(TextWindows, EachBeginsWithBosAndFillsTheContext) {
  const Letters letters;
  const auto windows = [&](const TextRange& range, uint32_t context) {
    std::vector<std::string> texts;
    for (const auto& window : text_windows(letters, "abcdefgh", range, context)) {
      EXPECT_EQ(window.front(), 0u);
      EXPECT_LE(window.size(), context);
      texts.emplace_back(window.begin() + 1, window.end());
    }
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(windows({}, 4), (Texts{"abc", "def", "gh"}));
  EXPECT_EQ(windows({}, 100), (Texts{"abcdefgh"}));
  EXPECT_EQ(windows({.skip = 2}, 4), (Texts{"cde", "fgh"}));
  EXPECT_EQ(windows({.skip = 1, .tokens = 4}, 4), (Texts{"bcd", "e"}));
  EXPECT_EQ(windows({.skip = 8}, 4), Texts{});
  EXPECT_EQ(windows({}, 1), Texts{});
}

}  // namespace
}  // namespace tierd
