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
  EXPECT_NE(error_in(root).find("which is not in the vocabulary"), std::string::npos);
}

TEST(TokenizerJson, RefusesWhatWouldChangeTheTokens) {
  const auto changed = [](const char* file, const char* pointer, const json& value) {
    json root = golden(file);
    root[json::json_pointer(pointer)] = value;
    return error_in(root);
  };
  EXPECT_EQ(changed("gpt2.json", "/normalizer", {{"type", "Lowercase"}}),
            "normalizer \"Lowercase\" is not supported");
  EXPECT_EQ(changed("gpt2.json", "/normalizer", {{"type", "NFC"}}), "none");
  EXPECT_EQ(changed("gpt2.json", "/pre_tokenizer/add_prefix_space", true),
            "pre_tokenizer ByteLevel: add_prefix_space is not supported");
  EXPECT_EQ(changed("gpt2.json", "/pre_tokenizer", {{"type", "Whitespace"}}),
            "pre_tokenizer \"Whitespace\" is not supported; expected ByteLevel or Metaspace");
  EXPECT_EQ(changed("gpt2.json", "/model/end_of_word_suffix", "</w>"),
            "model.end_of_word_suffix is not supported");
  EXPECT_NE(changed("gpt2.json", "/model/ignore_merges", true)
                .find("pre_tokenizer \"ByteLevel\" with model.ignore_merges is not supported; supported are"),
            std::string::npos);
  EXPECT_NE(changed("qwen2.json", "/pre_tokenizer/pretokenizers/0/pattern/Regex", "x+")
                .find("is not supported; supported are"),
            std::string::npos);
  EXPECT_EQ(changed("llama.json", "/normalizer", nullptr),
            "has neither a pre_tokenizer ByteLevel nor a normalizer that writes spaces as \"▁\"; expected "
            "one of them");
  EXPECT_EQ(changed("llama.json", "/normalizer/normalizers/0/prepend", "x"),
            "normalizer \"Prepend\" is not supported");
}

TEST(TokenizerJson, MergesThatScoresCannotTell) {
  json root = golden("llama.json");
  json& merges = root["model"]["merges"];
  merges.erase(merges.size() - 1);
  EXPECT_NE(error_in(root).find("of them; expected the merges of a sentencepiece model"), std::string::npos);
  // Two ways to the same piece, with another piece's merge between them.
  root["model"]["merges"] = {"a b", "ab c", "b c", "a bc"};
  root["model"]["vocab"] = {{"<unk>", 0}, {"a", 1}, {"b", 2}, {"c", 3}, {"ab", 4}, {"bc", 5}, {"abc", 6}};
  root["added_tokens"] = json::array();
  EXPECT_EQ(error_in(root), "model.merges[3]: the merges that result in \"abc\" are not consecutive");
  root["model"]["merges"] = {"a b", "b c", "ab c", "a bc"};
  EXPECT_EQ(error_in(root), "none");
}

}  // namespace
}  // namespace tierd
