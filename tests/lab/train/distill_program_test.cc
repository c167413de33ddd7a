// Runs tier-train distill as a user does: a few steps of the embedded model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/base/file.h"
#include "tests/e2e/program.h"

namespace tierd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class TierDistill : public ProgramTest {
 protected:
  std::string out() const { return folder().path() + "/out"; }
  // Returns the path of some 200 tokens of text.
  std::string text() const {
    return folder().write("text.txt", file_text(TIERD_SOURCE_DIR "/LICENSE").substr(0, 600));
  }
  Ended distill(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {
        "distill", kDemo, text(), "-o",         out(), "--steps",         "2",   "--batch", "2", "--sequence",
        "24",      "-t",  "1",    "--sparsity", "0.6", "--learning-rate", "1e-3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(TIERD_BIN_TRAIN, std::move(arguments));
  }
  std::string refused(std::vector<std::string> arguments) const {
    const std::string shown = testing::PrintToString(arguments);
    arguments.insert(arguments.begin(), "distill");
    const Ended run = run_program(TIERD_BIN_TRAIN, arguments);
    EXPECT_EQ(run.status, 2) << shown << run.err;
    EXPECT_THAT(run.out, IsEmpty()) << shown;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << shown << run.err;
    EXPECT_THAT(run.err, StartsWith("tier-train: ")) << shown;
    EXPECT_FALSE(file_exists(out() + "/config.json")) << shown;
    return run.err;
  }
};

TEST_F(TierDistill, MakesAModelThatRuns) {
  if (!TIERD_TRAINS) GTEST_SKIP() << "built without libtorch";
  const Ended run = distill({});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("step 2 of 2: 100 %, loss 0."), HasSubstr(" tokens/s")));
  EXPECT_THAT(run.out, AllOf(HasSubstr("as it came, sparsity 0.6"), HasSubstr("distilled, dense")));
  const auto made = nlohmann::json::parse(file_text(out() + "/distillation.json"), nullptr, false);
  ASSERT_TRUE(made.is_object());
  EXPECT_EQ(made["sparsity"], 0.6);
  EXPECT_EQ(made["steps"], 2);
  EXPECT_EQ(made["seed"], 1);
  EXPECT_EQ(made["loss"], "teacher");
  EXPECT_EQ(made["mask_gradient"], "straight-through");
  EXPECT_GT(made["held_out"]["before"]["divergence"], 0);

  const Ended said =
      run_tierd({"-m", out(), "-p", "First Citizen:", "-n", "4", "--temp", "0", "-t", "1", "-q"});
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_NE(file_text(out() + "/model.safetensors"), file_text(kDemo + "/model.safetensors"));
}

TEST_F(TierDistill, TheSameSeedGivesTheSameWeights) {
  if (!TIERD_TRAINS) GTEST_SKIP() << "built without libtorch";
  std::vector<std::string> weights;
  for (const char* seed : {"1", "1", "2"}) {
    const Ended run = distill({"--seed", seed, "--fake-quant", "q4_0-channels", "-q"});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out + run.err, IsEmpty());
    weights.push_back(file_text(out() + "/model.safetensors"));
    std::filesystem::remove_all(out());
  }
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_NE(weights[0], weights[2]);
}

TEST_F(TierDistill, AblationsGiveOtherWeights) {
  if (!TIERD_TRAINS) GTEST_SKIP() << "built without libtorch";
  std::set<std::string> weights;
  for (const std::vector<std::string>& ablation :
       {std::vector<std::string>{}, {"--loss", "text"}, {"--mask-gradient", "zero"}}) {
    const Ended run = distill(ablation);
    ASSERT_EQ(run.status, 0) << run.err;
    weights.insert(file_text(out() + "/model.safetensors"));
    std::filesystem::remove_all(out());
  }
  EXPECT_EQ(weights.size(), 3U);
}

TEST_F(TierDistill, WhatCannotBeDistilled) {
  const std::string golden = TIERD_SOURCE_DIR "/tests/golden/models/";
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {kDemo, text(), "-o", out(), "-q", "-t", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return refused(arguments);
  };
  EXPECT_THAT(with({"--sequence", "257"}),
              HasSubstr("--sequence: 257 tokens, the model has a context of 256"));
  EXPECT_THAT(with({"--sequence", "1000"}), HasSubstr("--sequence"));
  const std::string brief = folder().write("brief.txt", "First Citizen: speak.");
  EXPECT_THAT(refused({kDemo, brief, "-o", out()}),
              HasSubstr("1 windows of 256 tokens, of which 1 are to be held out: none is left to train on"));
  EXPECT_THAT(with({"--sparsity", "1"}), HasSubstr("--sparsity"));
  EXPECT_THAT(with({"--learning-rate", "0"}), HasSubstr("--learning-rate"));
  EXPECT_THAT(with({"--fake-quant", "q5"}), HasSubstr("--fake-quant"));
  EXPECT_THAT(with({"--loss", "accuracy"}), HasSubstr("--loss"));
  EXPECT_THAT(with({"--mask-gradient", "one"}), HasSubstr("--mask-gradient"));
  EXPECT_THAT(with({"--device", "tpu"}), HasSubstr("--device"));
  EXPECT_THAT(with({"--steps", "3", "--epochs", "2"}), HasSubstr("excludes"));
  EXPECT_THAT(refused({"/nowhere", text(), "-o", out()}), HasSubstr("/nowhere"));
  EXPECT_THAT(refused({kDemo, "/nowhere/text", "-o", out()}), HasSubstr("/nowhere/text"));
  EXPECT_THAT(refused({golden + "falcon", text(), "-o", out()}), HasSubstr("holds q, k and v in one"));
  EXPECT_THAT(refused({golden + "gguf-llama-f16/model.gguf", text(), "-o", out()}),
              HasSubstr("is no Hugging Face folder"));
  EXPECT_THAT(refused({golden + "opt", text(), "-o", out(), "--sequence", "8"}),
              HasSubstr("brings no tokenizer"));
  if (!TIERD_TRAINS) {
    EXPECT_THAT(with({"--sequence", "24"}), HasSubstr("built without libtorch; run ci/install libtorch-dev"));
    return;
  }
  EXPECT_THAT(refused({kDemo, text(), "-o", kDemo, "--sequence", "24"}), HasSubstr("is there already"));
}

}  // namespace
}  // namespace tierd
