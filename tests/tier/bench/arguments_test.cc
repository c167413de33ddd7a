#include "tools/tier/bench/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/base/temp_folder.h"

namespace tierd {
namespace {

using testing::HasSubstr;

Parsed parse(std::vector<std::string> words) {
  words.insert(words.begin(), "tier-bench");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse_arguments(static_cast<int>(words.size()), argv.data());
}

// Returns the one line with which `words` are refused.
std::string refusal(std::vector<std::string> words) {
  testing::internal::CaptureStderr();
  const Parsed parsed = parse(std::move(words));
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(parsed.exit_code, 2) << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  return line;
}

TEST(Arguments, DefaultsAreBothTests) {
  const Parsed parsed = parse({"-m", "x"});
  ASSERT_FALSE(parsed.exit_code);
  ASSERT_EQ(parsed.arguments.tests.size(), 2u);
  EXPECT_EQ(parsed.arguments.tests[0].name(), "pp512");
  EXPECT_EQ(parsed.arguments.tests[1].name(), "tg128");
  EXPECT_EQ(parsed.arguments.rounds, 5u);
  EXPECT_EQ(parsed.arguments.config.context, 512u);
}

TEST(Arguments, OverTheConfiguration) {
  const Parsed parsed = parse({"-m", "x", "-p", "0", "-n", "8", "-c", "64", "-t", "2", "-r", "3", "--set",
                               "tiers.dram.capacity=75%", "-o", "json", "--seed", "5"});
  ASSERT_FALSE(parsed.exit_code);
  const Arguments& arguments = parsed.arguments;
  ASSERT_EQ(arguments.tests.size(), 1u);
  EXPECT_EQ(arguments.tests[0].name(), "tg8");
  EXPECT_EQ(arguments.config.context, 64u);
  EXPECT_EQ(arguments.config.threads, 2u);
  EXPECT_EQ(arguments.config.find_tier("dram")->capacity, "75%");
  EXPECT_EQ(arguments.config.seed, 5u);
  EXPECT_EQ(arguments.rounds, 3u);
  EXPECT_EQ(arguments.format, Format::json);
}

TEST(Arguments, WithAPeerOneRateIsMeasured) {
  const Parsed parsed =
      parse({"-m", "x", "--peer", "true", "--peer-rate", "(1)", "-p", "16", "--rounds", "2"});
  ASSERT_FALSE(parsed.exit_code);
  ASSERT_EQ(parsed.arguments.tests.size(), 1u);
  EXPECT_EQ(parsed.arguments.tests[0].name(), "pp16");
  EXPECT_EQ(parsed.arguments.rounds, 2u);
  EXPECT_EQ(parse({"-m", "x", "--peer", "true", "--peer-rate", "(1)"}).arguments.tests.at(0).name(), "tg128");
}

TEST(Arguments, ATextIsContinuedInsteadOfAPrompt) {
  TempFolder folder;
  const std::string file = folder.write("a.txt", "The sea");
  const Parsed parsed = parse({"-m", "x", "-f", file, "-n", "8"});
  ASSERT_FALSE(parsed.exit_code);
  ASSERT_EQ(parsed.arguments.tests.size(), 1u);
  EXPECT_EQ(parsed.arguments.tests[0].name(), "tg8");
  ASSERT_TRUE(parsed.arguments.text);
  EXPECT_EQ(parsed.arguments.text->file, file);
  EXPECT_EQ(parsed.arguments.text->text, "The sea");
  EXPECT_EQ(parsed.arguments.config.context, 0u);  // the tokenizer is not loaded yet
  EXPECT_THAT(refusal({"-m", "x", "-f", file, "-p", "8"}), HasSubstr("--file"));
  EXPECT_THAT(refusal({"-m", "x", "-f", file, "--block-seconds", "8"}), HasSubstr("--file"));
  EXPECT_THAT(refusal({"-m", "x", "-f", "/nowhere/a.txt"}), HasSubstr("/nowhere/a.txt"));
}

TEST(Arguments, JsonIsAFormat) {
  EXPECT_EQ(parse({"-m", "x", "--json"}).arguments.format, Format::json);
  EXPECT_THAT(refusal({"-m", "x", "--json", "-o", "md"}), HasSubstr("excludes"));
}

TEST(Arguments, SweepsAreAnotherCommand) {
  EXPECT_EQ(refusal({"-m", "x", "--sweep", "cache.k=1,2", "--plot=a b.svg"}),
            "tier-bench: --sweep is another command now: tier sweep -m x --sweep cache.k=1,2 "
            "'--plot=a b.svg'\n");
  EXPECT_THAT(refusal({"--plot", "a.svg"}), HasSubstr(": tier sweep --plot a.svg\n"));
}

TEST(Arguments, BadOnesAreRefusedInOneLine) {
  EXPECT_THAT(refusal({"-m", "x", "-p", "0", "-n", "0"}), HasSubstr("nothing to measure"));
  EXPECT_THAT(refusal({"-m", "x", "-p", "64", "-c", "32"}), HasSubstr("do not fit a context of 32"));
  EXPECT_THAT(refusal({"--peer", "true"}), HasSubstr("--peer-rate"));
  EXPECT_THAT(refusal({"--peer-rate", "(1)"}), HasSubstr("--peer"));
  EXPECT_THAT(refusal({"--rounds", "2"}), HasSubstr("--peer"));
  EXPECT_THAT(refusal({"--keep"}), HasSubstr("--peer"));
  EXPECT_THAT(refusal({"--peer", "true", "--peer-rate", "1"}), HasSubstr("has no group"));
  EXPECT_THAT(refusal({"--peer", "true", "--peer-rate", "(1)", "-p", "4", "-n", "4"}), HasSubstr("not both"));
  EXPECT_THAT(refusal({"--peer", "true", "--peer-rate", "(1)", "-r", "4"}), HasSubstr("excludes"));
  EXPECT_THAT(refusal({"-o", "sql"}), HasSubstr("sql"));
  EXPECT_THAT(refusal({"-r", "0"}), HasSubstr("-"));
  EXPECT_THAT(refusal({"--block-seconds", "-1"}), HasSubstr("--block-seconds"));
  EXPECT_THAT(refusal({"--set", "run.thread=2"}), HasSubstr("run.thread"));
  EXPECT_THAT(refusal({"--config", "/does/not/exist.toml"}), HasSubstr("/does/not/exist.toml"));
  EXPECT_THAT(refusal({"--unknown"}), HasSubstr("--unknown"));
}

}  // namespace
}  // namespace tierd
