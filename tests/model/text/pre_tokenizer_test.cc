#include "core/model/text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/base/random.h"
#include "core/model/text/pre_tokenizer_rules.h"
#include "tests/model/text/files.h"

namespace tierd {
namespace {

std::string words(const std::string& name, std::string_view text) {
  const auto made = PreTokenizer::make(name, "test");
  if (!made.ok()) return made.error().line();
  std::string out;
  for (const std::string_view word : made->split(text)) out += "[" + std::string(word) + "]";
  return out;
}

TEST(PreTokenizer, SplitsAsTheFamilyDoes) {
  EXPECT_EQ(words("gpt-2", "Hello  world's 1234 end."), "[Hello][ ][ world]['s][ 1234][ end][.]");
  EXPECT_EQ(words("gpt-2", "I'LL\n\n x"), "[I]['][LL][\n\n][ x]");
  EXPECT_EQ(words("llama-bpe", "I'LL\n\n 12345 x!\n"), "[I]['LL][\n\n][ ][123][45][ x][!\n]");
  EXPECT_EQ(words("qwen2", "12 a"), "[1][2][ a]");
  EXPECT_EQ(words("falcon", "$x 12345"), "[$][x][ ][123][45]");
  EXPECT_EQ(words("deepseek-coder", "a 12\n"), "[a][ ][1][2][\n]");
}

// The words of the tokenizers package with the published expressions
// (tests/golden/make_pre_tokenizer_golden.py).
TEST(PreTokenizer, EachRuleCutsAsThePublishedExpressionsDo) {
  const auto golden = nlohmann::json::parse(read_text(kGoldenFolder + "pre_tokenizers.json"));
  const auto texts = golden.at("texts").get<std::vector<std::string>>();
  for (const auto& [name, all] : golden.at("rules").items()) {
    const auto made = PreTokenizer::make(name, "test");
    ASSERT_TRUE(made.ok()) << made.error().line();
    for (size_t i = 0; i < texts.size(); ++i) {
      std::vector<size_t> bytes;
      for (const std::string_view word : made->split(texts[i])) bytes.push_back(word.size());
      EXPECT_EQ(bytes, all[i].get<std::vector<size_t>>()) << name << ": " << texts[i];
    }
  }
  for (const auto& [name, rule] : golden.at("names").items()) {
    const PreTokenizerRule* const found = find_pre_tokenizer_rule(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->name, rule.get<std::string>()) << name;
  }
}

TEST(PreTokenizer, KnowsItsSpaces) {
  // U+180E is no white space since Unicode 6.3; U+0085 and U+00A0 are.
  EXPECT_EQ(words("gpt-2", "a\u180e\u180eb"), "[a][\u180e\u180e][b]");
  EXPECT_EQ(words("gpt-2", "a\u0085\u00a0b"), "[a][\u0085][\u00a0][b]");
}

TEST(PreTokenizer, BytesThatAreNotUtf8AreWordsOfTheirOwn) {
  EXPECT_EQ(words("gpt-2", "ab\xff\xfe cd\xc3"), "[ab][\xff\xfe][ cd][\xc3]");
  EXPECT_EQ(words("gpt-2", "\xed\xa0\x80"), "[\xed\xa0\x80]") << "a surrogate";
  EXPECT_EQ(words("gpt-2", std::string_view("a\0b", 3)), std::string("[a][\0][b]", 9));
}

TEST(PreTokenizer, KeepsEveryByte) {
  Random random(2);
  for (const char* name : {"gpt-2", "llama-bpe", "qwen2", "falcon", "deepseek-coder"}) {
    const auto made = PreTokenizer::make(name, "test");
    ASSERT_TRUE(made.ok());
    for (int round = 0; round < 200; ++round) {
      std::string text;
      for (uint32_t n = random.below(80); n > 0; --n) {
        text.push_back(
            static_cast<char>(random.below(2) ? random.below(256) : " a1.\n\xc3\xa9\xe2"[random.below(8)]));
      }
      std::string joined;
      for (const std::string_view word : made->split(text)) {
        ASSERT_FALSE(word.empty());
        joined += word;
      }
      ASSERT_EQ(joined, text);
    }
  }
}

// Groups of digits are cut without the matcher of expressions, which takes quadratic time.
TEST(PreTokenizer, GroupsOfDigitsAreThoseOfTheExpression) {
  Random random(5);
  for (const char* expression :
       {R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))", R"(\d{1,3}(?=(?:\d{3})*\b))", R"((?=(\d{3})+(?!\d)))"}) {
    const auto cut = [](const std::string& pattern) {
      return *PreTokenizer::make({{.kind = TextStepKind::split, .pattern = pattern, .regex = true}},
                                 LastByteLevel::writes, "test");
    };
    const PreTokenizer groups = cut(expression);
    const PreTokenizer matched = cut(std::string("(?:") + expression + ")");
    for (int round = 0; round < 2000; ++round) {
      std::string text;
      for (uint32_t n = random.below(24); n > 0; --n) {
        constexpr std::array kParts = {"1", "2", "\u0663", "\u00b2", "\u2167", "a", " ", "_", "\u0301", "."};
        text += kParts[random.below(2) ? random.below(3) : random.below(kParts.size())];
      }
      EXPECT_EQ(groups.split(text).words, matched.split(text).words) << expression << ": " << text;
    }
  }
}

TEST(PreTokenizer, LongRunsAreNoTrouble) {
  for (const char* name : {"gpt-2", "llama-bpe", "deepseek-coder", "afmoe", "tiny_aya", "superbpe"}) {
    const auto made = PreTokenizer::make(name, "test");
    ASSERT_TRUE(made.ok());
    for (const char c : {' ', 'x', '\n', '!', '7', '\xff'}) {
      const std::string text(1 << 20, c);
      size_t bytes = 0;
      for (const std::string_view word : made->split(text)) bytes += word.size();
      EXPECT_EQ(bytes, text.size());
    }
  }
}

TEST(PreTokenizer, UnknownNamesGetTheList) {
  const auto made = PreTokenizer::make("klingon", "model.gguf");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::unsupported);
  EXPECT_TRUE(
      made.error().line().starts_with("model.gguf: unknown pre-tokenizer \"klingon\"; known are gpt-2, "
                                      "llama-bpe, qwen2, falcon, starcoder, "))
      << made.error().line();
}

}  // namespace
}  // namespace tierd
