// Compares a trained model in three containers with its published text and likelihood. Skipped where the
// model is not beside the project.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "core/model/sampling/sampler.h"
#include "core/model/text/tokenizer.h"
#include "core/store/source.h"
#include "tests/model/reference.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kSteps = 200;
constexpr double kExpectedLikelihood = 1.2664;  // nats a token
constexpr size_t kExpectedTokens = 1804;
constexpr const char* kExpectedText =
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, "
    "she "
    "saw a big, red ball. She wanted to play with it, but it was too high.\n"
    "Lily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to do. She said, \"I "
    "want to play with your ball, but I can't find it.\"\n"
    "Lily was sad and didn't know what to do. She said, \"I'm sorry, Lily. I didn't know what to do.\"\n"
    "Lily didn't want to help her mom, so she";

fs::path shared_folder() {
  if (const char* named = std::getenv("TIERD_SHARED")) return named;
  return fs::path(TIERD_SOURCE_DIR) / ".." / "shared";
}

class Stories : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const fs::path folder = shared_folder() / "data/models/stories260K";
    if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not here";
    const auto source = open_source(folder / GetParam(), {.tokenizer = folder / "tok512.bin"});
    ASSERT_TRUE(source.ok()) << source.error().line();
    auto loaded = Reference::load(**source);
    ASSERT_TRUE(loaded.ok()) << loaded.error().line();
    model_ = std::make_unique<Reference>(std::move(*loaded));
    ASSERT_NE((*source)->vocab(), nullptr);
    auto tokenizer = make_tokenizer(*(*source)->vocab(), GetParam());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().line();
    tokenizer_ = std::move(*tokenizer);
  }

  std::unique_ptr<Reference> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(Stories, TellsItsStoryGreedily) {
  auto sampler = Sampler::create({.temperature = 0});
  std::vector<uint32_t> story;
  uint32_t token = tokenizer_->vocab().bos;
  for (uint32_t position = 0; position < kSteps; ++position) {
    token = *sampler->sample(model_->forward(token, position));
    story.push_back(token);
  }
  EXPECT_EQ(tokenizer_->decode(story), kExpectedText);
}

double log_sum_exp(std::span<const float> logits) {
  const float highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - highest);
  return highest + std::log(sum);
}

TEST_P(Stories, FindsStoriesAsLikelyAsPublished) {
  std::ifstream in(shared_folder() / "data/text/tinystories_sample.txt");
  std::stringstream text;
  text << in.rdbuf();
  const std::string separator = "<|endoftext|>";
  double sum = 0;
  size_t predicted = 0;
  std::string rest = text.str();
  while (!rest.empty()) {
    const size_t end = rest.find(separator);
    std::string document = rest.substr(0, end);
    rest = end == std::string::npos ? "" : rest.substr(end + separator.size());
    const size_t first = document.find_first_not_of(" \n");
    if (first == std::string::npos) continue;
    document = document.substr(first, document.find_last_not_of(" \n") + 1 - first);

    auto tokens = tokenizer_->encode(document, true, false);
    if (tokens.size() > model_->config().context_length) tokens.resize(model_->config().context_length);
    for (uint32_t position = 0; position + 1 < tokens.size(); ++position) {
      const auto logits = model_->forward(tokens[position], position);
      sum += log_sum_exp(logits) - logits[tokens[position + 1]];
      ++predicted;
    }
  }
  EXPECT_EQ(predicted, kExpectedTokens);
  EXPECT_NEAR(sum / static_cast<double>(predicted), kExpectedLikelihood, 0.001);
}

INSTANTIATE_TEST_SUITE_P(Containers, Stories, testing::Values("stories260K.bin", "stories260K_v1.bin", "hf"),
                         [](const auto& container) {
                           std::string name = container.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace tierd
