// Makes and runs a planted model as a user does.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kShape = R"(
architecture = "opt"
n_layers = 3
d_model = 128
n_heads = 2
d_ff = 512
vocab_size = 600
context_length = 64
norm = "layer"
norm_bias = true
activation = "relu"
gated = false
ffn_bias = true
position = "learned"
position_offset = 2
)";

constexpr const char* kLlamaShape = R"(
architecture = "llama"
n_layers = 3
d_model = 256
n_heads = 4
n_kv_heads = 2
head_dim = 64
d_ff = 512
vocab_size = 1500
context_length = 256
norm = "rms"
activation = "silu"
gated = true
position = "rope_interleaved"
rope_theta = 10000.0
)";

// Returns the words after a prompt. The last letter changes first, as on a counter.
std::string words_after(const std::string& prompt, int words) {
  std::string word = prompt.substr(prompt.rfind(' ') + 1), text;
  for (; words > 0; --words) {
    auto letter = word.rbegin();
    for (; *letter == 'z'; ++letter) *letter = 'a';
    ++*letter;
    text += " " + word;
  }
  return text;
}

class Planted : public ProgramTest {
 protected:
  std::string out() const { return folder().path() + "/planted"; }
  Ended make(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {
        "--shape", folder().write("tiny.toml", kShape), "-q", out(), "--layout", "neuron"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(TIERD_BIN_SYNTH, arguments);
  }
};

TEST_F(Planted, TierdContinuesTheIds) {
  const Ended made =
      make({"--sparsity-profile", "flash", "--encoding", "f16", "--documents", "2", "--prompt-tokens", "20"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.err, testing::IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(out() + ".predictor.safetensors"));
  EXPECT_THAT(file_text(out() + "/manifest.json"), HasSubstr(R"("source":"planted: flash, seed 1")"));
  for (const char* name : {".prompt.txt", ".prompt-2.txt"}) {
    const std::string prompt = file_text(out() + name);
    const Ended run =
        run_tierd({"-m", out(), "-f", out() + name, "-n", "10", "--temp", "0", "-t", "1", "-q"});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, StartsWith(words_after(prompt, 10)));
  }
}

// Leaving out half of the channels changes no word. A store and a GGUF file hold the same model.
TEST_F(Planted, ChannelsContinueTheIdsToo) {
  const std::string shape = folder().write("llama.toml", kLlamaShape);
  const auto made = [&](const std::string& to, std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "--shape", shape, "--sparsity-profile", "activeflow", "--documents", "1", "-q", to};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(TIERD_BIN_SYNTH, arguments);
  };
  const std::string store = folder().path() + "/store", gguf = folder().path() + "/model.gguf";
  for (const Ended& one : {made(store, {"--layout", "channel-group"}), made(gguf, {"--format", "gguf"})}) {
    ASSERT_EQ(one.status, 0) << one.err;
    EXPECT_THAT(one.err, testing::IsEmpty());
  }
  EXPECT_EQ(file_text(store + ".prompt.txt"), file_text(gguf + ".prompt.txt"));
  const auto text = [&](const std::string& model, const char* config) {
    const Ended run =
        run_tierd({"--config", TIERD_SOURCE_DIR + std::string("/configs/") + config, "-m", model, "-f",
                   store + ".prompt.txt", "-n", "20", "--temp", "0", "-t", "1", "-q"});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  };
  const std::string resident = text(gguf, "resident.toml");
  EXPECT_EQ(text(store, "activeflow.toml"), resident);
  EXPECT_THAT(resident, StartsWith(words_after(file_text(store + ".prompt.txt"), 20)));

  const std::string rates = folder().path() + "/rates.safetensors";
  const Ended profiled =
      run_program(TIERD_BIN_PROFILE, {"-m", store, store + ".prompt.txt", "-o", rates, "--thresholds", "-q"});
  ASSERT_EQ(profiled.status, 0) << profiled.err;
  const std::string in_order = folder().path() + "/in-order";
  const Ended one = made(in_order, {"--layout", "channel-group", "--order", rates});
  ASSERT_EQ(one.status, 0) << one.err;
  for (const char* config : {"activeflow.toml", "resident.toml"}) EXPECT_EQ(text(in_order, config), resident);
  const Ended again = run_program(TIERD_BIN_PROFILE,
                                  {"-m", in_order, store + ".prompt.txt", "-o", rates, "--thresholds", "-q"});
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("has channels in the order of --order"));
  const Ended other = run_tierd({"-m", store, "--set", "model.order=" + rates, "-p", "a"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(
      other.err,
      HasSubstr("keeps in the order of their numbers; convert its model again with tier convert --order"));
}

TEST_F(Planted, RefusesInOneLine) {
  const auto refused = [&](std::vector<std::string> more) {
    const Ended made = make(std::move(more));
    EXPECT_EQ(made.status, 2);
    EXPECT_EQ(std::ranges::count(made.err, '\n'), 1) << made.err;
    EXPECT_FALSE(std::filesystem::exists(out()));
    return made.err;
  };
  EXPECT_THAT(refused({"--sparsity-profile", "flesh", "--encoding", "f16"}),
              HasSubstr("no such sparsity profile; known are activeflow, flash"));
  EXPECT_THAT(refused({"--sparsity-profile", "flash", "--encoding", "f32", "--documents", "50"}),
              HasSubstr("do not fit"));
  EXPECT_THAT(refused({"--sparsity-profile", "flash"}), HasSubstr("f16 or f32, found q4_0"));
  EXPECT_THAT(refused({"--documents", "2"}), HasSubstr("--sparsity-profile"));
}

}  // namespace
}  // namespace tierd
