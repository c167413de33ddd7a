// Runs tier-train as a user does, on a golden model of two layers with synthetic activations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/random.h"
#include "core/formats/safetensors.h"
#include "core/store/source.h"
#include "tests/e2e/program.h"
#include "tests/lab/train/activations_builder.h"

namespace tierd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

const std::string kOpt = TIERD_SOURCE_DIR "/tests/golden/models/opt";
constexpr uint32_t kTokens = 600;

Ended run_train(std::vector<std::string> arguments) {
  return run_program(TIERD_BIN_TRAIN, std::move(arguments));
}

// Returns random inputs, and the activations of the model's neurons on them.
SafetensorsBuilder activations_of(const std::string& model) {
  const auto source = open_source(model);
  EXPECT_TRUE(source.ok());
  const ModelConfig& config = (*source)->config();
  Random random(1);
  SafetensorsBuilder file;
  for (uint32_t n = 0; n < config.n_layers; ++n) {
    const std::string layer = "layers." + std::to_string(n);
    const auto up = (*source)->read_f32(*(*source)->find(layer + ".up"));
    const auto bias = (*source)->read_f32(*(*source)->find(layer + ".up.bias"));
    EXPECT_TRUE(up.ok() && bias.ok());
    std::vector<float> x(kTokens * config.d_model);
    for (float& value : x) value = f16_to_f32(f32_to_f16(random.symmetric()));
    std::vector<float> contributions;
    for (uint32_t t = 0; t < kTokens; ++t) {
      for (uint32_t i = 0; i < config.d_ff; ++i) {
        const auto row = up->begin() + i * config.d_model;
        const auto input = x.begin() + t * config.d_model;
        contributions.push_back(
            std::max(0.0F, std::inner_product(row, row + config.d_model, input, (*bias)[i])));
      }
    }
    file.add(layer + ".ffn.x", "F16", {kTokens, config.d_model}, f16_bytes(x));
    file.add(layer + ".ffn.contribution", "F16", {kTokens, config.d_ff}, f16_bytes(contributions));
  }
  return file;
}

class TierTrain : public ProgramTest {
 protected:
  std::string out() const { return folder().path() + "/out.safetensors"; }
  std::string activations() const { return folder().write("a.safetensors", activations_of(kOpt).bytes()); }

  // Returns the error line of a command that ends with status 2.
  std::string refused(const std::vector<std::string>& arguments) const {
    const std::string shown = testing::PrintToString(arguments);
    const Ended run = run_train(arguments);
    EXPECT_EQ(run.status, 2) << shown << run.err;
    EXPECT_THAT(run.out, IsEmpty()) << shown;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << shown << run.err;
    EXPECT_THAT(run.err, StartsWith("tier-train: ")) << shown;
    EXPECT_FALSE(file_exists(out())) << shown;
    return run.err;
  }
};

TEST_F(TierTrain, WritesPredictorsThatReadBack) {
  const std::string json_file = folder().path() + "/table.json";
  const Ended run = run_train({"predictor", kOpt, activations(), "-o", out(), "--rank", "0=8,1=d/2",
                               "--sweep", "-t", "1", "--json", json_file});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("layer 0 of 0-1, rank 8, epoch 1 of 2: loss 0."),
                             HasSubstr("layer 1 of 0-1, rank 16, epoch 2 of 2: loss 0."),
                             HasSubstr("training 100 %")));
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("threshold 0.3\n"), HasSubstr("threshold 0.7\n"), HasSubstr("\nmean")));

  const auto file = File::open(out());
  ASSERT_TRUE(file.ok());
  const auto tensors = read_safetensors_header(*file);
  ASSERT_TRUE(tensors.ok()) << tensors.error().line();
  std::vector<std::string> shown;
  for (const SafetensorsTensor& tensor : *tensors) {
    shown.push_back(tensor.name + " " + tensor.dtype + " " + testing::PrintToString(tensor.shape));
  }
  EXPECT_THAT(shown, ElementsAre("layers.0.ffn.a F16 { 8, 32 }", "layers.0.ffn.b F16 { 128, 8 }",
                                 "layers.0.ffn.bias F32 { 128 }", "layers.0.ffn.kept F32 { 21 }",
                                 "layers.1.ffn.a F16 { 16, 32 }", "layers.1.ffn.b F16 { 128, 16 }",
                                 "layers.1.ffn.bias F32 { 128 }", "layers.1.ffn.kept F32 { 21 }"));
  const auto object = nlohmann::json::parse(file_text(json_file), nullptr, false);
  ASSERT_TRUE(object.is_object());
  EXPECT_EQ(object["layers"][0]["thresholds"][0]["pairs"], 60 * 128);  // the held-out tenth
  EXPECT_EQ(object["mean"][1]["threshold"], 0.5);
}

TEST_F(TierTrain, TheSameSeedGivesTheSameFile) {
  const std::string input = activations();
  std::vector<std::string> files;
  for (const auto& [seed, threads] : {std::pair("1", "1"), std::pair("1", "2"), std::pair("2", "1")}) {
    const Ended run = run_train({"predictor", kOpt, input, "-o", out(), "--rank", "4", "--seed", seed,
                                 "--dtype", "f32", "-t", threads, "-q"});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out + run.err, IsEmpty());
    files.push_back(file_text(out()));
  }
  EXPECT_EQ(files[0], files[1]);
  EXPECT_NE(files[0], files[2]);
}

TEST_F(TierTrain, WhatCannotBeTrainedOn) {
  const auto with = [&](const std::string& file, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"predictor", kOpt, file, "-o", out(), "-q", "-t", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return refused(arguments);
  };
  const std::string sound = activations();
  EXPECT_THAT(refused({"predictor", TIERD_SOURCE_DIR "/tests/golden/models/llama2", sound, "-o", out()}),
              HasSubstr("have no ReLU"));
  EXPECT_THAT(with(sound, {"--rank", "33"}), HasSubstr("--rank: '33' is a rank of 33, expected 1 to 32"));
  EXPECT_THAT(with(sound, {"--rank", "0=4"}), HasSubstr("--rank: layer 1 is not named"));
  EXPECT_THAT(with(sound, {"--learning-rate", "0"}), HasSubstr("--learning-rate"));
  EXPECT_THAT(with(sound, {"--held-out", "nan"}), HasSubstr("--held-out: Value nan is not a number"));
  EXPECT_THAT(with(sound, {"--threshold", "1"}), HasSubstr("--threshold"));
  EXPECT_THAT(with(sound, {"--dtype", "q4_0"}), HasSubstr("--dtype"));
  EXPECT_THAT(with(sound, {"--threshold", "0.5", "--sweep"}), HasSubstr("excludes"));
  EXPECT_THAT(refused({"predictor", kOpt, sound, "-o", sound}), HasSubstr("is the file of activations"));
  EXPECT_THAT(with("/nowhere/a.safetensors"), HasSubstr("/nowhere/a.safetensors"));
  EXPECT_THAT(with(folder().write("none", "not one")), HasSubstr("none"));

  SafetensorsBuilder lacking = activations_of(kOpt);
  lacking.header["layers.2.ffn.x"] = lacking.header["layers.1.ffn.x"];
  lacking.header.erase("layers.1.ffn.x");
  EXPECT_THAT(with(folder().write("lacking", lacking.bytes())),
              HasSubstr("lacking: has no tensor \"layers.1.ffn.x\""));
  SafetensorsBuilder wrong = activations_of(kOpt);
  wrong.header["layers.0.ffn.x"]["shape"] = {kTokens / 2, 64};
  EXPECT_THAT(with(folder().write("wrong", wrong.bytes())),
              HasSubstr("shape [300, 64], expected [tokens, 32]"));
  wrong.header["layers.0.ffn.x"]["shape"] = {kTokens, 32};
  wrong.header["layers.0.ffn.x"]["dtype"] = "BF16";
  EXPECT_THAT(with(folder().write("wrong", wrong.bytes())), HasSubstr("dtype \"BF16\", expected F16 or F32"));
  SafetensorsBuilder single;
  for (const char* layer : {"layers.0.ffn", "layers.1.ffn"}) {
    single.add_f32(layer + std::string(".x"), {1, 32}, 1);
    single.add_f32(layer + std::string(".contribution"), {1, 128}, 1);
  }
  EXPECT_THAT(with(folder().write("single", single.bytes())),
              HasSubstr("1 tokens, of which 1 are held out; none is left to train on"));
  SafetensorsBuilder unreal = activations_of(kOpt);
  const uint64_t at = unreal.header["layers.1.ffn.contribution"]["data_offsets"][0];
  unreal.data.replace(at + 2 * 128 + 6, 2, "\xff\x7f");
  EXPECT_THAT(with(folder().write("unreal", unreal.bytes())),
              AllOf(HasSubstr("\"layers.1.ffn.contribution\""), HasSubstr("row 1, column 3 is nan")));
}

// Returns tables whose scores are the neurons' numbers, whatever the input.
SafetensorsBuilder tables(uint64_t rank, uint64_t neurons) {
  SafetensorsBuilder file;
  std::vector<float> bias(neurons);
  std::iota(bias.begin(), bias.end(), 0.0F);
  for (const char* site : {"layers.0.ffn", "layers.1.ffn"}) {
    file.add_f32(site + std::string(".a"), {rank, 32}, 0);
    file.add_f32(site + std::string(".b"), {neurons, rank}, 0);
    file.add(site + std::string(".bias"), "F32", {neurons}, f32_bytes(bias));
  }
  return file;
}

TEST_F(TierTrain, JudgesPredictorsFromLayersAway) {
  const std::string recorded = activations(), made = folder().write("tables", tables(4, 128).bytes());
  const std::string json_file = folder().path() + "/ahead.json";
  const Ended run =
      run_train({"judge", kOpt, recorded, made, "--ahead", "1", "--fetched", "0.25", "--json", json_file});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("layers ahead"), HasSubstr("\n0 "), HasSubstr("\n1 ")));
  const auto object = nlohmann::json::parse(file_text(json_file), nullptr, false);
  ASSERT_EQ(object["distances"].size(), 2U);
  EXPECT_EQ(object["fetched"], 0.25);
  const auto& farther = object["distances"][1];
  EXPECT_EQ(farther["predicted_percent"], 25.0);
  ASSERT_EQ(farther["layers"].size(), 1U);
  EXPECT_EQ(farther["layers"][0]["layer"], 1);
  EXPECT_EQ(farther["layers"][0]["pairs"], kTokens * 128);
  // These scores do not depend on the input.
  EXPECT_EQ(farther["layers"], object["distances"][0]["layers"]);

  const auto with = [&](const SafetensorsBuilder& file) {
    return refused({"judge", kOpt, recorded, folder().write("wrong", file.bytes())});
  };
  EXPECT_THAT(refused({"judge", kOpt, recorded, made, "--ahead", "2"}),
              HasSubstr("--ahead: no layer of 2 with a predictor is 2 layers after another"));
  EXPECT_THAT(with(tables(4, 100)), HasSubstr("\"layers.0.ffn.b\": shape [100, 4], expected [128, 4]"));
  EXPECT_THAT(with(tables(200, 128)), HasSubstr("rank 200, expected 1 to 128"));
  SafetensorsBuilder lacking = tables(4, 128);
  lacking.header["layers.2.ffn.b"] = lacking.header["layers.1.ffn.b"];
  lacking.header.erase("layers.1.ffn.b");
  EXPECT_THAT(with(lacking), HasSubstr("one of layers.1.ffn.a and layers.1.ffn.b is missing"));
  EXPECT_THAT(with(activations_of(kOpt)), HasSubstr("has no tensor \"layers.N.ffn.a\""));
  SafetensorsBuilder whole_numbers = tables(4, 128);
  whole_numbers.header["layers.0.ffn.a"]["dtype"] = "I32";
  EXPECT_THAT(with(whole_numbers), HasSubstr("dtype \"I32\", expected F32, F16 or BF16"));
}

TEST_F(TierTrain, GatesNeedNoTraining) {
  const Ended run = run_train({"gate", TIERD_SOURCE_DIR "/tests/golden/models/llama-fatrelu", "-o", out()});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto file = File::open(out());
  ASSERT_TRUE(file.ok());
  const auto tensors = read_safetensors_header(*file);
  ASSERT_TRUE(tensors.ok());
  ASSERT_THAT(*tensors, SizeIs(2));
  EXPECT_EQ(tensors->front().name, "layers.0.ffn.gate");
  std::filesystem::remove(out());
  EXPECT_THAT(refused({"gate", kOpt, "-o", out()}), HasSubstr("architecture 'opt' has no gates"));
  EXPECT_THAT(refused({"gate", "/nowhere", "-o", out()}), HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace tierd
