// Speculation changes when tokens are computed, not which tokens.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Speculation : public ProgramTest {
 protected:
  static json run(std::vector<std::string> more, const std::string& tokens = "60") {
    std::vector<std::string> arguments = {
        "-m", kDemo,    "-p",           "First Citizen:\nWe are, we are, we are",
        "-n", tokens,   "-t",           "1",
        "-q", "--json", "--ignore-eos", "--fit"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = run_tierd(arguments);
    EXPECT_EQ(ended.status, 0) << ended.err;
    return json::parse(ended.out, nullptr, false);
  }
};

TEST_F(Speculation, TheTextIsTheSame) {
  const std::vector<std::vector<std::string>> ways = {
      {"--temp", "0"},
      {"--temp", "0.8", "-s", "3"},
      {"--temp", "0", "--set", "tiers.dram.capacity=50%"},
      {"--temp", "0", "--set", "model.layout=neuron", "--set", "cache.name=residency-window", "--set",
       "tiers.dram.capacity=60%", "--set", "predictor.name=random", "--set", "predictor.p=1.0"}};
  for (const auto& way : ways) {
    const json alone = run(way);
    EXPECT_EQ(alone["report"]["speculation"]["guessed"], 0);
    for (const auto& guess : std::vector<std::vector<std::string>>{
             {"--prompt-lookup"}, {"--prompt-lookup", "--draft-max", "9"}, {"-md", kDemo}}) {
      std::vector<std::string> arguments = way;
      arguments.insert(arguments.end(), guess.begin(), guess.end());
      const json guessed = run(arguments);
      EXPECT_EQ(guessed["text"], alone["text"]) << way[1] << ' ' << guess.front();
      EXPECT_EQ(guessed["report"]["generated_tokens"], 60);
      // Decoded tokens are those accepted: all but the first one, which the prompt gave, and no wrong guess.
      EXPECT_EQ(guessed["report"]["decode"]["tokens"], 59);
      EXPECT_GT(guessed["report"]["speculation"]["guessed"], 0);
      EXPECT_LE(guessed["report"]["decode"]["steps"], alone["report"]["decode"]["steps"]);
    }
  }
}

TEST_F(Speculation, AModelKnowsItself) {
  const json guessed = run({"--temp", "0", "-md", kDemo, "--draft-max", "4"});
  const json& report = guessed["report"];
  // The last guesses may go beyond the end.
  EXPECT_GE(report["speculation"]["right"].get<int>() + 4, report["speculation"]["guessed"].get<int>());
  EXPECT_LE(report["decode"]["steps"], 60 / 5 + 1);
}

TEST_F(Speculation, TheContextIsFilledToItsEnd) {
  const json alone = run({"--temp", "0", "-c", "40"}, "-1");
  const json guessed = run({"--temp", "0", "-c", "40", "-md", kDemo}, "-1");
  EXPECT_EQ(guessed["text"], alone["text"]);
  EXPECT_EQ(guessed["report"]["generated_tokens"], alone["report"]["generated_tokens"]);
}

TEST_F(Speculation, ATraceOfItIsReplayed) {
  const std::string trace = folder().path() + "/run.trace";
  (void)run({"--temp", "0", "--prompt-lookup", "--trace", trace, "--set", "model.layout=neuron", "--set",
             "cache.name=residency-window", "--set", "tiers.dram.capacity=60%"});
  const Ended replayed = run_program(TIERD_BIN_TRACE, {"replay", trace});
  EXPECT_EQ(replayed.status, 0) << replayed.out << replayed.err;
}

TEST_F(Speculation, AFileMayNameWhoGuesses) {
  const json alone = run({"--temp", "0"});
  const std::string file =
      folder().write("guess.toml", std::string("[speculation]\nmodel = \"") + kDemo + "\"\nmost = 7\n");
  const json guessed = run({"--temp", "0", "--config", file});
  EXPECT_EQ(guessed["text"], alone["text"]);
  EXPECT_LE(guessed["report"]["decode"]["steps"], 60 / 8 + 1);
  // The flag replaces the file's setting.
  const json looked_up = run({"--temp", "0", "--config", file, "--prompt-lookup"});
  EXPECT_EQ(looked_up["text"], alone["text"]);
  EXPECT_GT(looked_up["report"]["decode"]["steps"], 60 / 8 + 1);
}

TEST_F(Speculation, WhatCannotGuessIsRefused) {
  const auto refused = [](std::vector<std::string> more, const std::string& why) {
    std::vector<std::string> arguments = {"-m", kDemo, "-p", "a", "-q"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = run_tierd(arguments);
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(ended.err, HasSubstr(why));
  };
  refused({"--prompt-lookup", "--draft-max", "0"}, "--draft-max: 0, expected 1 to 63");
  refused({"-md", "/nowhere"}, "/nowhere");
  refused({"-md", kDemo, "--prompt-lookup"}, "--prompt-lookup");
  refused({"--set", "speculation.most=64"}, "speculation.most: 64, expected 1 to 63");
  refused(
      {"-md", kDemo, "--set", "speculation.lookup=true", "--set", "speculation.model=x", "--prompt-lookup"},
      "--prompt-lookup");
  refused({"--set", "speculation.lookup=true", "--set", "speculation.model=x"},
          "speculation.model is set as well, expected one of them");
  refused({"-md", TIERD_SOURCE_DIR "/tests/golden/models/opt"}, "expected the same vocabulary");
}

}  // namespace
}  // namespace tierd
