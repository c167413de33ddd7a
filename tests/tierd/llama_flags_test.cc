// Tests command lines that were written for llama.cpp.
#include "tools/tierd/llama_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tools/tierd/arguments.h"

namespace tierd {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Outcome {
  std::optional<int> exit_code;
  std::string said;
  Arguments arguments;
};
Outcome parse(std::vector<std::string> words) {
  words.insert(words.begin(), "tierd");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Parsed parsed = parse_arguments(static_cast<int>(argv.size()), argv.data());
  const std::string said = testing::internal::GetCapturedStderr() + testing::internal::GetCapturedStdout();
  return {parsed.exit_code, said, std::move(parsed.arguments)};
}

// A line "-c, --ctx-size N": the names, and the value that may follow them.
struct Flag {
  std::vector<std::string> names;
  std::string value;
};
std::vector<Flag> listed() {
  std::vector<Flag> flags;
  std::ifstream file(TIERD_SOURCE_DIR "/tests/tierd/llama_flags.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    Flag flag;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word.front() == '-' && word.size() > 1) {
        if (word.back() == ',') word.pop_back();
        flag.names.push_back(word);
      } else if (flag.value.empty()) {
        flag.value = word;
      }
    }
    flags.push_back(std::move(flag));
  }
  return flags;
}

std::string value_for(const std::string& described) {
  if (described == "TYPE") return "f16";
  if (described == "FNAME" || described == "FILE") return TIERD_SOURCE_DIR "/tests/tierd/llama_flags.txt";
  if (described == "TOKEN_ID(+/-)BIAS") return "5+1";
  if (described.starts_with("[on|off")) return "on";
  if (described.starts_with("{")) return described.substr(1, described.find_first_of(",}") - 1);
  return "1";
}

// Every flag is accepted, or refused by its name with an explanation.
TEST(LlamaFlags, EachIsTakenOrRefusedByItsName) {
  size_t taken = 0, refused = 0;
  for (const Flag& flag : listed()) {
    for (const std::string& name : flag.names) {
      std::vector<std::string> words = {name};
      if (!flag.value.empty()) words.push_back(value_for(flag.value));
      const Outcome outcome = parse(words);
      SCOPED_TRACE(name + ": " + outcome.said);
      if (!outcome.exit_code || *outcome.exit_code == 0) {
        ++taken;
        continue;
      }
      ++refused;
      EXPECT_EQ(*outcome.exit_code, 2);
      EXPECT_EQ(std::count(outcome.said.begin(), outcome.said.end(), '\n'), 1);
      bool named = false;
      for (const std::string& other : flag.names) named |= outcome.said.find(other) != std::string::npos;
      EXPECT_TRUE(named);
      EXPECT_THAT(outcome.said, Not(AnyOf(HasSubstr("is no flag"), HasSubstr("not expected"))));
    }
  }
  EXPECT_GT(taken, 100u);
  EXPECT_GT(refused, 200u);
}

TEST(LlamaFlags, AClusterIsNoBundleOfFlags) {
  EXPECT_THAT(parse({"-ngl", "99"}).said, HasSubstr("-ngl 99: memory is divided among tiers"));
  EXPECT_FALSE(parse({"-ngl", "0"}).exit_code);
  EXPECT_THAT(parse({"-ngx", "99"}).said, HasSubstr("-ngx: is no flag"));
  EXPECT_EQ(parse({"-c512", "-t2"}).arguments.config.context, 512u);
  EXPECT_EQ(parse({"-p", "-ngl"}).arguments.prompt, "-ngl") << "a value, whatever it looks like";
  const std::string both = parse({"-ot", "a=CPU", "--mlock"}).said;
  EXPECT_THAT(both, HasSubstr("-ot: "));
  EXPECT_THAT(both, HasSubstr("; --mlock: "));
}

TEST(LlamaFlags, MeanTheSame) {
  const Arguments arguments =
      parse({"-hf-is-no-value", "x"}).exit_code
          ? parse({"model.gguf", "-ub",  "64",   "-b",       "32",  "-np",   "3",
                   "-fa",        "-ctk", "f32",  "-ctv",     "f32", "-sp",   "--temperature",
                   "0.5",        "-fit", "off",  "-l",       "7-1", "-fitc", "512",
                   "--no-mmap",  "-cnv", "-sys", "Be brief."})
                .arguments
          : Arguments();
  EXPECT_EQ(arguments.config.model, "model.gguf");
  EXPECT_EQ(arguments.config.ubatch, 32u);
  EXPECT_EQ(arguments.config.sequences, 3u);
  EXPECT_EQ(arguments.config.kv, "f32");
  EXPECT_TRUE(arguments.special);
  EXPECT_FLOAT_EQ(arguments.sampling.temperature, 0.5f);
  EXPECT_FALSE(arguments.shorten);
  EXPECT_EQ(arguments.shortest_context, 512u);
  EXPECT_EQ(arguments.mode, Mode::chat);
  EXPECT_EQ(arguments.system_prompt, "Be brief.");
  ASSERT_EQ(arguments.sampling.logit_bias.size(), 1u);
  EXPECT_TRUE(parse({"--fit"}).arguments.fit);
  EXPECT_EQ(parse({"-e", "-p", R"(a\nb\q)"}).arguments.prompt, "a\nb\\q");
  EXPECT_THAT(parse({"-e", "-p", "x", "-r", R"(User:\n)", "-r", "<|im_end|>"}).arguments.stops,
              ElementsAre("User:\n", "<|im_end|>"));
  EXPECT_THAT(parse({"-ctk", "f16", "-ctv", "f32"}).said, HasSubstr("the same encoding for both"));
}

TEST(Hub, IsNamedAsLlamaCppNamesIt) {
  const Arguments arguments = parse({"serve", "-hf", "a/b:Q8_0", "-hft", "hf_x", "--offline"}).arguments;
  EXPECT_EQ(arguments.hub.repository, "a/b");
  EXPECT_EQ(arguments.hub.quant, "Q8_0");
  EXPECT_EQ(arguments.hub_token, "hf_x");
  EXPECT_TRUE(arguments.offline);
  EXPECT_EQ(arguments.alias, "a/b:Q8_0");
  EXPECT_EQ(parse({"-hfr", "a/b", "-hff", "c.gguf"}).arguments.hub.file, "c.gguf");
  EXPECT_EQ(parse({"m", "-p", "x", "-hfd", "a/b:Q4_0"}).arguments.draft_hub.quant, "Q4_0");
  EXPECT_THAT(parse({"m", "-p", "x", "-hfd", "a"}).said, HasSubstr("--hf-repo-draft: 'a' is not OWNER/REPO"));
  EXPECT_THAT(parse({"m", "-p", "x", "-hfd", "a/b", "-md", "c"}).said, HasSubstr("excludes"));
  EXPECT_THAT(parse({"m", "-cnv", "-hfd", "a/b"}).said,
              HasSubstr("--model-draft, --prompt-lookup and [speculation]: are not supported in a chat, only "
                        "for one text (-p) and in the server"));
  EXPECT_THAT(parse({"-hf", "a"}).said, HasSubstr("OWNER/REPO[:QUANT]"));
  EXPECT_THAT(parse({"-hff", "c.gguf"}).said, HasSubstr("--hf-repo"));
  EXPECT_THAT(parse({"m", "-hf", "a/b"}).said, HasSubstr("expected one model"));
  setenv("LLAMA_ARG_HF_REPO", "c/d", 1);
  EXPECT_EQ(parse({}).arguments.hub.repository, "c/d");
  EXPECT_EQ(parse({"-hf", "a/b"}).arguments.hub.repository, "a/b");
  EXPECT_EQ(parse({"-m", "m"}).arguments.hub.repository, "") << "the command line counts";
  EXPECT_EQ(parse({"-m", "m"}).arguments.config.model, "m");
  unsetenv("LLAMA_ARG_HF_REPO");
  setenv("LLAMA_ARG_MODEL", "m", 1);
  EXPECT_EQ(parse({"-hf", "a/b"}).arguments.hub.repository, "a/b");
  unsetenv("LLAMA_ARG_MODEL");
}

TEST(Modes, ArePromptsServersAndChats) {
  EXPECT_EQ(parse({"m", "-p", "x"}).arguments.mode, Mode::text);
  EXPECT_EQ(parse({"serve", "m"}).arguments.mode, Mode::serve);
  EXPECT_EQ(parse({"serve", "m"}).arguments.config.model, "m");
  EXPECT_EQ(parse({"m", "--port", "0"}).arguments.mode, Mode::serve);
  EXPECT_THAT(parse({"serve", "m", "-p", "x"}).said,
              HasSubstr("serve: a server takes no prompt; leave out -p and -f"));
  EXPECT_THAT(parse({"m", "n"}).said, HasSubstr("found a second model"));
  EXPECT_THAT(parse({"m", "-m", "n"}).said, HasSubstr("found a second model"));
}

TEST(Help, IsAScreenAndKnowsItsFlags) {
  const std::string help = parse({"--help"}).said;
  EXPECT_LE(std::count(help.begin(), help.end(), '\n'), 40);
  const std::string all = parse({"--help", "all"}).said;
  EXPECT_THAT(all, HasSubstr("tiers.NAME.capacity"));
  std::istringstream words(help);
  for (std::string word; words >> word;) {
    if (!word.starts_with("--") || word.size() < 4) continue;
    while (std::ispunct(static_cast<unsigned char>(word.back())) != 0) word.pop_back();
    EXPECT_THAT(all, HasSubstr(word)) << word;
  }
}

}  // namespace
}  // namespace tierd
