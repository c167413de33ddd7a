// A planted model as a user makes and runs it.
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

// What follows the last word of a prompt, up to where the words' last letter turns round.
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
    std::string word = prompt.substr(prompt.rfind(' ') + 1);
    std::string expected;
    for (int i = 0; i < 10; ++i) {
      if (++word[1] > 'z') word = {static_cast<char>(word[0] + 1), 'a'};
      expected += " " + word;
    }
    EXPECT_THAT(run.out, StartsWith(expected));
  }
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
              HasSubstr("no such sparsity profile; known are flash"));
  EXPECT_THAT(refused({"--sparsity-profile", "flash", "--encoding", "f32", "--documents", "50"}),
              HasSubstr("do not fit"));
  EXPECT_THAT(refused({"--sparsity-profile", "flash"}), HasSubstr("f16 or f32, found q4_0"));
  EXPECT_THAT(refused({"--documents", "2"}), HasSubstr("--sparsity-profile"));
}

}  // namespace
}  // namespace tierd
