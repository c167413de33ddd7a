#include "core/formats/tokenizer/special_tokens.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/model/text/tokenizer.h"
#include "tests/model/text/files.h"

namespace tierd {
namespace {

Vocab three_tokens() {
  Vocab vocab;
  vocab.pieces = {"<a>", "<b>", "<c>"};
  vocab.types.assign(3, TokenType::normal);
  return vocab;
}

Status apply(Vocab& vocab) {
  return apply_special_token_files(write_text("tokenizer.json", "{}"), vocab);
}

TEST(SpecialTokens, NothingBesideChangesNothing) {
  Vocab vocab = three_tokens();
  vocab.eos = 1;
  ASSERT_TRUE(apply(vocab).ok());
  EXPECT_EQ(vocab.bos, kNoToken);
  EXPECT_EQ(vocab.end_tokens, (std::vector<uint32_t>{1}));
  EXPECT_TRUE(vocab.add_bos);
}

TEST(SpecialTokens, AllThreeFiles) {
  write_text("special_tokens_map.json", R"({"bos_token": {"content": "<a>"}, "eos_token": "<a>"})");
  write_text("tokenizer_config.json", R"({"eos_token": "<b>", "unk_token": null, "add_bos_token": false})");
  write_text("generation_config.json", R"({"eos_token_id": [2, 1]})");
  Vocab vocab = three_tokens();
  ASSERT_TRUE(apply(vocab).ok());
  EXPECT_EQ(vocab.bos, 0u);
  EXPECT_EQ(vocab.eos, 1u) << "tokenizer_config.json comes last";
  EXPECT_FALSE(vocab.add_bos);
  EXPECT_EQ(vocab.end_tokens, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(vocab.types[0], TokenType::control);
  EXPECT_EQ(vocab.types[2], TokenType::normal);
}

TEST(SpecialTokens, AChatTemplateIsATextANamedOneOrAFileOfItsOwn) {
  const auto found = [](const char* name, const char* text) {
    const std::string path = write_text(name, text);
    Vocab vocab = three_tokens();
    EXPECT_TRUE(apply(vocab).ok());
    std::filesystem::remove(path);
    return vocab.chat_template;
  };
  write_text("special_tokens_map.json", "{}");
  write_text("generation_config.json", "{}");
  EXPECT_EQ(found("tokenizer_config.json", R"({"chat_template": "one"})"), "one");
  EXPECT_EQ(
      found(
          "tokenizer_config.json",
          R"({"chat_template": [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "two"}]})"),
      "two");
  EXPECT_EQ(found("chat_template.json", R"({"chat_template": "of a processor"})"), "of a processor");
  EXPECT_EQ(found("chat_template.jinja", "three"), "three");
}

TEST(SpecialTokens, AllNamedTokensAreFoundWhole) {
  write_text("special_tokens_map.json", R"({"pad_token": "<c>", "mask_token": {"content": "<none>"}})");
  write_text("tokenizer_config.json", R"({"unk_token": "<b>", "clean_up_tokenization_spaces": true})");
  Vocab vocab = three_tokens();
  testing::internal::CaptureStderr();
  ASSERT_TRUE(apply(vocab).ok());
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(vocab.types[0], TokenType::normal);
  EXPECT_EQ(vocab.types[1], TokenType::control);
  EXPECT_EQ(vocab.types[2], TokenType::control);
  EXPECT_NE(lines.find("mask_token: \"<none>\" is not in the vocabulary; ignored"), std::string::npos);
  EXPECT_NE(lines.find("clean_up_tokenization_spaces: true is ignored"), std::string::npos);
}

TEST(SpecialTokens, ChatsWithToolsMayHaveATemplateOfTheirOwn) {
  write_text(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "two"}]})");
  Vocab vocab = three_tokens();
  ASSERT_TRUE(apply(vocab).ok());
  EXPECT_EQ(vocab.chat_template, "two");
  EXPECT_EQ(vocab.tool_chat_template, "tools");
  const std::filesystem::path folder =
      std::filesystem::path(write_text("tokenizer_config.json", R"({"chat_template": "one"})")).parent_path();
  write_text("chat_template.json", R"({"chat_template": "of a processor"})");
  std::filesystem::create_directory(folder / "additional_chat_templates");
  std::ofstream(folder / "additional_chat_templates" / "tool_use.jinja") << "of a file";
  vocab = three_tokens();
  ASSERT_TRUE(apply(vocab).ok());
  EXPECT_EQ(vocab.chat_template, "one");
  EXPECT_EQ(vocab.tool_chat_template, "of a file");
}

TEST(SpecialTokens, ErrorsNameFileAndKey) {
  const auto error = [](const char* name, const char* text) {
    const std::string path = write_text(name, text);
    Vocab vocab = three_tokens();
    const Status status = apply(vocab);
    std::filesystem::remove(path);
    return status.ok() ? "none" : status.error().line().substr(path.size() - std::string(name).size());
  };
  EXPECT_EQ(error("tokenizer_config.json", R"({"bos_token": "<x>"})"),
            "tokenizer_config.json: bos_token: \"<x>\" is not in the vocabulary");
  EXPECT_EQ(
      error("tokenizer_config.json", R"({"chat_template": 3})"),
      "tokenizer_config.json: chat_template: expected a string, or a list of objects with name and template");
  EXPECT_EQ(error("tokenizer_config.json", R"({"eos_token": 3})"),
            "tokenizer_config.json: eos_token: expected the token's text, found number");
  EXPECT_EQ(error("tokenizer_config.json", R"({"sp_model_kwargs": {"nbest_size": -1}})"),
            "tokenizer_config.json: sp_model_kwargs: options are not supported, expected {}");
  EXPECT_EQ(error("tokenizer_config.json", R"({"add_bos_token": "yes"})"),
            "tokenizer_config.json: add_bos_token: expected true or false, found string");
  EXPECT_EQ(error("generation_config.json", R"({"eos_token_id": [0, "1"]})"),
            "generation_config.json: eos_token_id: expected a token's id, found \"1\"");
  EXPECT_EQ(error("generation_config.json", R"({"eos_token_id": 3})"), "none") << "it is passed over";
  EXPECT_EQ(error("special_tokens_map.json", "[]"), "special_tokens_map.json: found [], expected an object");
}

}  // namespace
}  // namespace tierd
