// Runs tier-profile --search-ratio as a user does, on the demo model.
#include <gmock/gmock.h>

#include <filesystem>

#include "core/config/config.h"
#include "tests/e2e/program.h"
#include "tests/formats/safetensors_builder.h"

namespace tierd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class RatioCli : public ProgramTest {
 protected:
  std::vector<std::string> arguments(std::vector<std::string> more) const {
    std::vector<std::string> all = {"-m", kDemo, kDemo + "/held-out.txt", "-o", output(), "--tokens", "40",
                                    "-c", "20",  "--prompt-tokens",       "8",  "-q"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string output() const { return folder().path() + "/ratios.toml"; }
  static std::vector<std::string> ranked() {
    return {"--set", "predictor.name=low-rank", "--set",
            "predictor.tensors=" + kDemo + "/predictor-r64.safetensors"};
  }
};

TEST_F(RatioCli, WritesTheSurestMixture) {
  std::vector<std::string> more = ranked();
  more.insert(more.end(), {"--search-ratio", "8.4", "--step", "0.5"});
  std::vector<std::string> all = arguments(more);
  all.erase(std::find(all.begin(), all.end(), "-q"));
  all.emplace_back("--sweep");
  const Ended ended = run_program(TIERD_BIN_PROFILE, all);
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("f16/q8_0/q4_0"));
  EXPECT_THAT(ended.out, HasSubstr("* least uncertain (Algorithm 1)"));
  EXPECT_THAT(ended.out, HasSubstr("least perplexity of all: "));
  const auto written = load_config(output(), {});
  ASSERT_TRUE(written.ok()) << written.error().line();
  EXPECT_EQ(written->predictor.name, "low-rank");
  EXPECT_EQ(written->quantizer.name, "mixed");
  EXPECT_THAT(file_text(output()), HasSubstr("bits a value, UQEst"));
}

TEST_F(RatioCli, IsRefusedInALine) {
  const auto refused = [&](std::vector<std::string> more) {
    const Ended ended = run_program(TIERD_BIN_PROFILE, arguments(std::move(more)));
    EXPECT_EQ(ended.status, 2) << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_THAT(ended.err, StartsWith("tier-profile: "));
    EXPECT_FALSE(std::filesystem::exists(output()));
    return ended.err;
  };
  EXPECT_THAT(
      refused({"--search-ratio", "8.4"}),
      HasSubstr("predictor.name: --search-ratio requires a predictor that ranks neurons, such as low-rank"));
  EXPECT_THAT(refused({"--search-ratio", "0"}), HasSubstr("--search-ratio"));
  EXPECT_THAT(refused({"--search-ratio", "8.4", "--step", "0"}), HasSubstr("--step"));
  EXPECT_THAT(refused({"--step", "0.1"}), HasSubstr("--step requires --search-ratio"));
  // With gates of 0 the predictor drops no neuron, so the memory must hold all of them.
  SafetensorsBuilder file;
  for (int layer = 0; layer < 6; ++layer)
    file.add_f32("layers." + std::to_string(layer) + ".ffn.gate", {1024, 256}, 0);
  const std::string gates = folder().write("gates.safetensors", file.bytes());
  const Ended few =
      run_program(TIERD_BIN_PROFILE, arguments({"--search-ratio", "3", "--set", "predictor.name=gate",
                                                "--set", "predictor.tensors=" + gates}));
  EXPECT_EQ(few.status, 2);
  EXPECT_THAT(few.err, HasSubstr("--search-ratio: 3 bits are too few for all neurons in q4_0"));
}

}  // namespace
}  // namespace tierd
