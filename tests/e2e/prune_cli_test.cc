// Runs tier-prune as a user does: a pruned model's loss on a text, and that it generates.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/e2e/program.h"
#include "tests/model/text/shared_files.h"

namespace tierd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kLlama = TIERD_SOURCE_DIR "/tests/golden/models/gguf-llama-f16/model.gguf";

class PruneCli : public ProgramTest {
 protected:
  static Ended prune(std::vector<std::string> arguments) {
    return run_program(TIERD_BIN_PRUNE, std::move(arguments));
  }
  std::string at(const std::string& name) const { return folder().path() + "/" + name; }

  // The embedded model's held-out text in two parts without a common token.
  std::string calibration() const { return folder().write("calibration.txt", held_out().substr(0, 18'000)); }
  std::string evaluation() const { return folder().write("evaluation.txt", held_out().substr(18'000)); }
  static std::string held_out() { return file_text(kDemo + "/held-out.txt"); }

  double perplexity(const std::string& model) const {
    const Ended run =
        run_program(TIERD_BIN_COMPARE, {"-m", model, evaluation(), "--tokens", "2048", "--json", "-q"});
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out)["reference_perplexity"];
  }
  double pruned_perplexity(std::vector<std::string> how) const {
    const std::string store = at("store");
    std::filesystem::remove_all(store);
    how.insert(how.end(),
               {kDemo, store, "--calibration", calibration(), "--calibration-tokens", "4096", "-q"});
    const Ended run = prune(how);
    EXPECT_EQ(run.status, 0) << run.err;
    return perplexity(store);
  }

  // Returns the last error line. Nothing may be written.
  std::string refused(std::vector<std::string> arguments) const {
    const Ended run = prune(arguments);
    const std::string shown = testing::PrintToString(arguments);
    EXPECT_EQ(run.status, 2) << shown << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << shown << run.err;
    EXPECT_THAT(run.err, StartsWith("tier-prune: ")) << shown;
    for (const char* made :
         {"out", "out.gguf", "out.partial", "out.gguf.partial", "out.pruned", "out.gguf.pruned"})
      EXPECT_FALSE(std::filesystem::exists(at(made))) << made << shown;
    return run.err;
  }
};

TEST_F(PruneCli, SparseGptLosesLeastAndSharesLessThanGroups) {
  const double dense = perplexity(kDemo);
  const double magnitude = pruned_perplexity({"--method", "magnitude", "--share", "0.5"});
  const double wanda = pruned_perplexity({"--method", "wanda", "--share", "0.5"});
  const double sparsegpt = pruned_perplexity({"--method", "sparsegpt", "--share", "0.5"});
  const double magnitude_groups = pruned_perplexity({"--method", "magnitude", "--nm", "2:4"});
  const double sparsegpt_groups = pruned_perplexity({"--method", "sparsegpt", "--nm", "2:4"});
  EXPECT_LE(sparsegpt, 1.02 * dense);
  EXPECT_LE(sparsegpt_groups, 1.04 * dense);
  EXPECT_LT(sparsegpt, std::min(magnitude, wanda));
  EXPECT_LT(sparsegpt_groups, magnitude_groups);
  EXPECT_LT(sparsegpt, sparsegpt_groups);
  EXPECT_LT(magnitude, magnitude_groups);
}

TEST_F(PruneCli, AStoreWithInt8AndSmoothingStillWritesText) {
  const Ended made = prune({kDemo, at("out"), "--method", "sparsegpt", "--nm", "2:4", "--smooth", "0.5",
                            "--encoding", "q8_0", "--compression", "bitmap", "--calibration", calibration(),
                            "--calibration-tokens", "2000", "--verify"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr(" % of the 4718592 weights"), HasSubstr("q8_0")));
  EXPECT_THAT(made.err, HasSubstr("pruning 100 %"));
  EXPECT_LE(perplexity(at("out")), 1.06 * perplexity(kDemo));
  const Ended run = run_tierd({"-m", at("out"), "-p", "First Citizen:", "-n", "20", "--temp", "0", "-q"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_GT(run.out.size(), 30u);
}

TEST_F(PruneCli, AGgufFileKeepsTokenizerAndEncoding) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "word " + std::to_string(i);
  const std::string words = folder().write("words.txt", text);
  for (const std::string method : {"magnitude", "wanda", "sparsegpt"}) {
    const std::string out = at(method + ".gguf");
    const Ended made = prune({"-m", kLlama, "-o", out, "--method", method, "--calibration", words, "-q"});
    ASSERT_EQ(made.status, 0) << made.err;
    EXPECT_NEAR(static_cast<double>(std::filesystem::file_size(out)),
                static_cast<double>(std::filesystem::file_size(kLlama)), 10'000);
    const Ended run = run_tierd({"-m", out, "-p", "word", "-n", "4", "--ignore-eos", "--temp", "0", "-q"});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_FALSE(run.out.empty());
    EXPECT_FALSE(std::filesystem::exists(out + ".partial"));
    EXPECT_FALSE(std::filesystem::exists(out + ".pruned"));
  }
}

// --check compresses neurons to count their bytes, so its plan is the same before the store is made and
// after.
TEST_F(PruneCli, CheckCountsWhatTheStoreWillCompress) {
  const std::string pruned = at("pruned.gguf");
  const Ended made = prune({kLlama, pruned, "--method", "magnitude", "--share", "0.7", "-q"});
  ASSERT_EQ(made.status, 0) << made.err;
  const auto endor = [&](const std::string& model, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"-m", model, "--config", config_file("endor"), "-q", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_tierd(arguments);
  };
  const Ended before = endor(pruned, {"--check"});
  ASSERT_EQ(before.status, 0) << before.err;
  EXPECT_TRUE(cached().empty());
  ASSERT_EQ(endor(pruned, {"-p", "word", "-n", "2"}).status, 0);
  const Ended after = endor(pruned, {"--check"});
  const auto json = [](const Ended& run) { return nlohmann::json::parse(run.out, nullptr, false); };
  for (const char* const key : {"tensor_bytes", "links", "weights"})
    EXPECT_EQ(json(before)[key], json(after)[key]) << key;
  EXPECT_EQ(json(before)["expected"]["resident_bytes_per_token"],
            json(after)["expected"]["resident_bytes_per_token"]);
  // A model on which compression saves nothing is refused before anything is written.
  const size_t stores = cached().size();
  for (const auto& more : {std::vector<std::string>{"--check"}, std::vector<std::string>{"-p", "word"}}) {
    const Ended refused = endor(kLlama, more);
    EXPECT_EQ(refused.status, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("model.compression: \"bitmap\" makes no matrix"));
  }
  EXPECT_EQ(cached().size(), stores);
}

TEST_F(PruneCli, AStoryIsToldByAPrunedModel) {
  const std::string model = shared_file("data/models/stories260K/stories260K.bin");
  const std::string tokenizer = shared_file("data/models/stories260K/tok512.bin");
  const std::string text = shared_file("data/text/tinystories_sample.txt");
  if (model.empty() || tokenizer.empty() || text.empty()) GTEST_SKIP() << "stories260K is not here";
  const Ended made = prune({model, at("out"), "--tokenizer", tokenizer, "--method", "sparsegpt", "--share",
                            "0.2", "--calibration", text, "-q"});
  ASSERT_EQ(made.status, 0) << made.err;
  const Ended run = run_tierd({"-m", at("out"), "-p", "Once upon", "-n", "40", "--temp", "0", "-q"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(" a time"));
}

TEST_F(PruneCli, WrongArgumentsAreALineBeforeAnyWork) {
  const std::string text = calibration(), out = at("out"), gguf = at("out.gguf");
  const std::string few = folder().write("few.txt", "To be");
  const std::vector<std::string> wanda = {kDemo, out, "--method", "wanda", "--calibration", text};
  const auto with = [](std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  for (const char* share : {"0", "1", "-0.5", "2", "nan"})
    EXPECT_THAT(refused(with(wanda, {"--share", share})), HasSubstr("--share")) << share;
  for (const char* groups : {"4", "4:4", "0:4", "a:b", "2:400"})
    EXPECT_THAT(refused(with(wanda, {"--nm", groups})), HasSubstr("--nm")) << groups;
  EXPECT_THAT(refused(with(wanda, {"--nm", "2:7"})),
              HasSubstr("inputs, expected a multiple of the 7 of --nm"));
  EXPECT_THAT(refused(with(wanda, {"--nm", "2:4", "--share", "0.6"})), HasSubstr("leave one of them out"));
  EXPECT_THAT(refused(with(wanda, {"--smooth", "1.5"})), HasSubstr("--smooth"));
  EXPECT_THAT(refused(with(wanda, {"--calibration-tokens", "20"})), HasSubstr("expected at least 128"));
  EXPECT_THAT(refused({kDemo, out, "--method", "best"}), HasSubstr("--method"));
  EXPECT_THAT(refused({kDemo, out, "--share", "0.5"}), HasSubstr("--method"));
  EXPECT_THAT(refused({kDemo, out, "--calibration", text}), HasSubstr("--method: is missing"));
  for (const char* method : {"wanda", "sparsegpt"})
    EXPECT_THAT(refused({kDemo, out, "--method", method}),
                AllOf(HasSubstr("--calibration"), HasSubstr(method)));
  EXPECT_THAT(refused({kDemo, out, "--smooth", "0.5"}), HasSubstr("--calibration"));
  EXPECT_THAT(refused({kDemo, out, "--method", "wanda", "--calibration", few}), HasSubstr("few.txt"));
  EXPECT_THAT(refused({kDemo, out, "--method", "wanda", "--calibration", at("none.txt")}),
              HasSubstr("none.txt"));
  EXPECT_THAT(refused({kDemo, gguf, "--method", "magnitude"}), HasSubstr("cannot be written as GGUF"));
  EXPECT_THAT(refused({kLlama, gguf, "--method", "magnitude", "--encoding", "q8_0"}), HasSubstr("GGUF file"));
  EXPECT_THAT(refused({TIERD_SOURCE_DIR "/tests/golden/models/mixtral", out, "--method", "magnitude"}),
              HasSubstr("mixture of experts"));
  const std::string tokenizer = TIERD_SOURCE_DIR "/configs/models/demo/tokenizer.json";
  EXPECT_THAT(refused({TIERD_SOURCE_DIR "/tests/golden/models/llama2", out, "--tokenizer", tokenizer,
                       "--method", "wanda", "--calibration", text}),
              HasSubstr("the tokenizer has 1536 tokens"));
}

TEST_F(PruneCli, TooLittleMemoryIsALineBeforeAnyWork) {
  const std::string command = std::string("ulimit -d 20000 && exec ") + TIERD_BIN_PRUNE + " " + kDemo + " " +
                              at("out") + " --method sparsegpt --calibration " + calibration();
  const Ended run = run_program("/bin/bash", {"-c", command});
  EXPECT_EQ(run.status, 2) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("pruning a layer takes"), HasSubstr("ulimit -d leaves")));
  EXPECT_FALSE(std::filesystem::exists(at("out")));
}

TEST_F(PruneCli, WhatIsThereIsNotOverwritten) {
  const std::string there = folder().write("there.gguf", "mine");
  const Ended run = prune({kLlama, there, "--method", "magnitude"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("exists, and a pruned model does not overwrite files"));
  EXPECT_EQ(file_text(there), "mine");
  std::filesystem::create_directory(at("folder"));
  EXPECT_EQ(prune({kLlama, at("folder"), "--method", "magnitude"}).status, 2);
}

TEST_F(PruneCli, TierConvertTakesModelAndOutputByFlags) {
  const std::string named = at("named"), placed = at("placed");
  for (const auto& arguments : {std::vector<std::string>{"-o", named, "--model", kLlama, "-q"},
                                std::vector<std::string>{"-m", kLlama, placed, "-q"}}) {
    const Ended made = run_program(TIERD_BIN_CONVERT, arguments);
    EXPECT_EQ(made.status, 0) << made.err;
  }
  EXPECT_EQ(file_text(named + "/weights.bin"), file_text(placed + "/weights.bin"));
  const Ended twice = run_program(TIERD_BIN_CONVERT, {"-m", kLlama, kLlama, at("out"), "-q"});
  EXPECT_EQ(twice.status, 2);
}

TEST_F(PruneCli, TierConvertNamesTheCommand) {
  const auto refused = [](std::vector<std::string> arguments) {
    const Ended run = run_program(TIERD_BIN_CONVERT, std::move(arguments));
    EXPECT_EQ(run.status, 2);
    return run.err;
  };
  EXPECT_EQ(
      refused({"a model", "out", "--prune", "wanda", "--sparsity=0.6", "--calibration", "it's.txt", "-q"}),
      "tier-convert: --prune is another command now: tier prune 'a model' out --method wanda --share=0.6 "
      "--calibration 'it'\\''s.txt' -q\n");
  EXPECT_EQ(refused({"a", "b", "--smooth", "0.5"}),
            "tier-convert: --smooth is another command now: tier prune a b --smooth 0.5\n");
}

}  // namespace
}  // namespace tierd
