#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/model/text/tokenizer.h"
#include "tests/model/text/files.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

json golden(const std::string& name) {
  return json::parse(read_text(kGoldenFolder + name));
}

// Returns the error's text after the file name, or "none".
std::string json_error(const std::string& text) {
  const std::string path = write_text("tokenizer.json", text);
  const auto vocab = read_tokenizer_json(path);
  return vocab.ok() ? "none" : vocab.error().line().substr(path.size() + 2);
}
std::string error_in(const json& root) {
  return json_error(root.dump());
}

TEST(TokenizerJson, PartsThatAreNotThere) {
  EXPECT_THAT(json_error(""), HasSubstr("not valid JSON: parse error at line 1, column 1"));
  EXPECT_THAT(json_error("{"), HasSubstr("not valid JSON: parse error at line 1, column 2"));
  EXPECT_EQ(json_error("[]"), "found [], expected an object");
  EXPECT_EQ(json_error("{}"), "the key model is missing; expected a tokenizer.json");
  EXPECT_EQ(json_error(R"({"model": {"type": "Unigram"}})"), "model.type is \"Unigram\"; supported is BPE");
  EXPECT_EQ(json_error(R"({"model": {"type": "BPE"}})"), "model.vocab or model.merges is missing");
  EXPECT_EQ(json_error(R"({"model": {"type": "BPE", "vocab": [], "merges": []}})"),
            "model.vocab: expected an object, found array");
  EXPECT_EQ(json_error(R"({"model": {"type": "BPE", "vocab": {}, "merges": []}})"),
            "the vocabulary is empty");
  EXPECT_EQ(json_error(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": 5}})"),
            "model.merges: expected a list");
}

TEST(TokenizerJson, NestingIsBounded) {
  EXPECT_EQ(json_error(std::string(1 << 20, '[')), "JSON nested deeper than 64 levels");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += R"({"a":)";
  EXPECT_EQ(json_error(objects), "JSON nested deeper than 64 levels");
  EXPECT_EQ(json_error(R"({"a": ")" + std::string(1000, '[') + R"("})"),
            "the key model is missing; expected a tokenizer.json");
}

TEST(TokenizerJson, WrongIds) {
  const auto with = [](const char* vocab) {
    return json_error(std::string(R"({"model": {"type": "BPE", "merges": [], "vocab": )") + vocab + "}}");
  };
  EXPECT_EQ(with(R"({"a": -1})"), "model.vocab: the id of \"a\" is -1; expected a whole number from 0");
  EXPECT_EQ(with(R"({"a": 1.5})"), "model.vocab: the id of \"a\" is 1.5; expected a whole number from 0");
  EXPECT_EQ(with(R"({"a": "b"})"), "model.vocab: the id of \"a\" is string; expected a whole number from 0");
  EXPECT_EQ(with(R"({"a": 4294967295})"),
            "model.vocab: the id of \"a\" is 4294967295; expected a whole number from 0");
  EXPECT_EQ(with(R"({"a": 4000000000})"), "the greatest id is 4000000000, but there are only 1 tokens");
  EXPECT_EQ(with(R"({"a": 1, "b": 1})"), "model.vocab: \"a\" and \"b\" both have id 1");
  EXPECT_THAT(with(R"({"a": 1e999})"), HasSubstr("not valid JSON: number overflow"));
}

TEST(TokenizerJson, GapsBecomeUnusedTokens) {
  json root = golden("gpt2.json");
  root["added_tokens"].push_back({{"id", 500}, {"content", "<far>"}, {"special", true}});
  const std::string path = write_text("tokenizer.json", root.dump());
  const auto vocab = read_tokenizer_json(path);
  ASSERT_TRUE(vocab.ok()) << vocab.error().line();
  EXPECT_EQ(vocab->pieces.size(), 501u);
  EXPECT_EQ(vocab->pieces[499], "[PAD499]");
  EXPECT_EQ(vocab->types[499], TokenType::unused);
  EXPECT_EQ(vocab->types[500], TokenType::control);
  EXPECT_TRUE(make_tokenizer(*vocab, path).ok());
}

TEST(TokenizerJson, WrongMergesAndAddedTokens) {
  for (const json& merge : {json("a"), json("a b c"), json("a "), json(5), json({"a"}), json({"a", 5})}) {
    json root = golden("gpt2.json");
    root["model"]["merges"][3] = merge;
    EXPECT_EQ(error_in(root), "model.merges[3]: expected \"left right\" or [\"left\", \"right\"]") << merge;
  }
  json root = golden("gpt2.json");
  root["added_tokens"] = {5};
  EXPECT_EQ(error_in(root), "added_tokens: expected objects with an id and a content");
  root = golden("gpt2.json");
  root["added_tokens"][0]["content"] = "another";
  root["added_tokens"][0]["id"] = 5;
  EXPECT_NE(error_in(root).find("added_tokens: "), std::string::npos);
  root = golden("llama.json");
  root["model"]["merges"][0] = "q qq";
  const auto vocab = read_tokenizer_json(write_text("tokenizer.json", root.dump()));
  ASSERT_TRUE(vocab.ok());
  EXPECT_THAT(make_tokenizer(*vocab, "t").error().line(), HasSubstr("which is not in the vocabulary"));
  root["model"]["merges"][0] = {"a b", "c"};
  EXPECT_THAT(error_in(root), StartsWith("model.merges[0]: the space in \"a b\" is not supported"));
  root["model"]["merges"][0] = {"", "c"};
  EXPECT_EQ(error_in(root), "model.merges[0]: a part is empty");
}

// Returns the error of the golden file with one value changed.
std::string changed(const char* file, const char* pointer, const json& value) {
  json root = golden(file);
  root[json::json_pointer(pointer)] = value;
  return error_in(root);
}

TEST(TokenizerJson, StepsThatAreRefusedByName) {
  EXPECT_THAT(changed("gpt2.json", "/normalizer", {{"type", "Nmt"}}),
              StartsWith("normalizer \"Nmt\" is not supported; supported are NFC, NFD, NFKC, NFKD, Lower"));
  EXPECT_THAT(
      changed("gpt2.json", "/pre_tokenizer", {{"type", "BertPreTokenizer"}}),
      StartsWith("pre_tokenizer \"BertPreTokenizer\" is not supported; supported are ByteLevel, Split"));
  EXPECT_THAT(changed("gpt2.json", "/decoder", {{"type", "CTC"}}),
              StartsWith("decoder \"CTC\" is not supported; supported are ByteLevel, Replace, ByteFallback"));
  EXPECT_EQ(changed("gpt2.json", "/normalizer", {{"type", "Sequence"}}),
            "normalizer Sequence: normalizers: expected a list");
  EXPECT_EQ(changed("gpt2.json", "/normalizer", {{"type", "NFC"}, {"strict", true}}),
            "normalizer NFC: the field \"strict\" is not supported");
  EXPECT_EQ(changed("gpt2.json", "/pre_tokenizer/use_regex", 1),
            "pre_tokenizer ByteLevel: use_regex: expected true or false, found number");
  EXPECT_EQ(changed("qwen2.json", "/pre_tokenizer/pretokenizers/0/behavior", "Odd"),
            "pre_tokenizer Split: behavior \"Odd\" is not supported; expected Isolated, Removed, "
            "MergedWithPrevious, MergedWithNext, Contiguous");
  EXPECT_EQ(changed("qwen2.json", "/pre_tokenizer/pretokenizers/0/pattern", "x"),
            "pre_tokenizer Split: pattern: expected an object with String or Regex");
  EXPECT_EQ(changed("llama.json", "/decoder", nullptr), "none") << "undoes the normalizers";
  EXPECT_EQ(changed("llama.json", "/normalizer/normalizers/0/prepend", std::string(257, 'x')),
            "normalizer Prepend: prepend: 257 bytes, expected at most 256");
}

TEST(TokenizerJson, StepsThatAreObeyed) {
  EXPECT_EQ(changed("gpt2.json", "/normalizer", {{"type", "Lowercase"}}), "none");
  EXPECT_EQ(changed("gpt2.json", "/pre_tokenizer/add_prefix_space", true), "none");
  EXPECT_EQ(changed("gpt2.json", "/pre_tokenizer", {{"type", "Whitespace"}}), "none");
  EXPECT_EQ(changed("gpt2.json", "/model/ignore_merges", true), "none");
  EXPECT_EQ(changed("qwen2.json", "/pre_tokenizer/pretokenizers/0/pattern/Regex", "x+"), "none");
  EXPECT_EQ(changed("llama.json", "/normalizer", nullptr),
            "decoder: missing; expected the steps that turn tokens into text");
  EXPECT_EQ(changed("llama.json", "/normalizer/normalizers/0/prepend", "x"), "none");
}

TEST(TokenizerJson, FieldsThatAreRefusedByName) {
  EXPECT_EQ(changed("gpt2.json", "/model/end_of_word_suffix", "</w>"),
            "model.end_of_word_suffix is not supported");
  EXPECT_EQ(changed("gpt2.json", "/model/cache_capacity", 5),
            "model: the field \"cache_capacity\" is not supported");
  EXPECT_THAT(changed("gpt2.json", "/added_tokens/0/scored", true),
              HasSubstr("the field \"scored\" is not supported"));
  EXPECT_EQ(changed("llama_metaspace.json", "/model/unk_token", "<none>"), "none")
      << "all bytes are tokens, so no text needs it";
}

// A short prompt must not fill the memory.
TEST(TokenizerJson, StepsThatMakeTextMuchLongerAreRefused) {
  json steps = json::array();
  for (int i = 0; i < 13; ++i)
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}});
  const json all = {{"type", "Sequence"}, {"normalizers", steps}};
  EXPECT_EQ(changed("gpt2.json", "/normalizer", all),
            "normalizer: 13 steps that can make a text 8192 times longer; expected at most 64 steps and a "
            "factor of 4096");
}

// Expressions of Oniguruma that PCRE2 reads otherwise.
TEST(TokenizerJson, ExpressionsThatAreRefusedByName) {
  const auto error = [](const char* expression) {
    json root = golden("qwen2.json");
    root[json::json_pointer("/pre_tokenizer/pretokenizers/0/pattern/Regex")] = expression;
    const auto vocab = read_tokenizer_json(write_text("tokenizer.json", root.dump()));
    if (!vocab.ok()) return vocab.error().line();
    const auto tokenizer = make_tokenizer(*vocab, "t");
    return tokenizer.ok() ? std::string("none") : tokenizer.error().line();
  };
  EXPECT_EQ(error("a\\h"), "t: the expression \"a\\h\" has \"\\h\" at offset 1, which is not supported");
  EXPECT_THAT(error("[a&&b]"), HasSubstr("has an intersection of classes at offset 2"));
  EXPECT_THAT(error("[a[^b]]"), HasSubstr("has a class inside a class at offset 2"));
  EXPECT_THAT(error("a{,2}"), HasSubstr("has a brace that is no repetition at offset 1"));
  EXPECT_THAT(error("a{2}+"), HasSubstr("has a repetition of a repetition at offset 1"));
  EXPECT_THAT(error("(?<n>a)"), HasSubstr("has a group \"(?<n\" at offset 0"));
  EXPECT_THAT(error("\\1"), HasSubstr("has \"\\1\" at offset 0"));
  EXPECT_THAT(error("\\p{Nope}"), HasSubstr("is not supported: unknown property"));
  EXPECT_THAT(error("(a"), HasSubstr("is not supported: missing closing parenthesis"));
  EXPECT_THAT(error("[a"), HasSubstr("has a class without an end at offset 2"));
  EXPECT_EQ(error("[a[bc]]|(?i)x"),
            "t: the expression \"[a[bc]]|(?i)x\" has a group \"(?i)\" at offset 8, "
            "which is not supported");
  EXPECT_EQ(error("(?i)[a[b]\\w]|\\b\\p{Han}{1,3}?|\\u00e9"), "none");
}

TEST(TokenizerJson, MergesThatScoresCannotTell) {
  json root = golden("llama.json");
  json& merges = root["model"]["merges"];
  merges.erase(merges.size() - 1);
  const auto kind = [&] {
    const auto vocab = read_tokenizer_json(write_text("tokenizer.json", root.dump()));
    EXPECT_TRUE(vocab.ok());
    return vocab->kind;
  };
  EXPECT_EQ(kind(), VocabKind::ranked_bpe);
  root = golden("llama.json");
  EXPECT_EQ(kind(), VocabKind::sentencepiece_bpe);
}

}  // namespace
}  // namespace tierd
