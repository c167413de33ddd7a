// Tokenizers that other programs write and load, and that were once refused or read wrongly here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/formats/vocab_files.h"
#include "core/model/text/tokenizer.h"
#include "core/store/source.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/gguf_builder.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json added_token(uint32_t id, const char* content, bool special = true) {
  return {{"id", id},        {"content", content},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", !special}, {"special", special}};
}

// Returns pieces of "hi" with and without a space, and [INST], as transformers 5 saves a Llama's.
json metaspace_tokenizer(const json& pre_tokenizer) {
  return {
      {"added_tokens", {added_token(0, "<unk>"), added_token(1, "<s>"), added_token(2, "[INST]")}},
      {"normalizer", nullptr},
      {"pre_tokenizer", pre_tokenizer},
      {"post_processor", nullptr},
      {"decoder", nullptr},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"fuse_unk", true},
        {"byte_fallback", false},
        {"vocab", {{"<unk>", 0}, {"<s>", 1}, {"▁h", 3}, {"h", 4}, {"i", 5}, {"▁hi", 6}, {"hi", 7}, {"▁", 8}}},
        {"merges", {"▁ h", "h i", "▁h i", "▁ hi"}}}}};
}

std::vector<uint32_t> encoded(const json& tokenizer_json, const std::string& text) {
  const TempFolder folder;
  const auto vocab = read_tokenizer_json(folder.write("tokenizer.json", tokenizer_json.dump()));
  if (!vocab.ok()) {
    ADD_FAILURE() << vocab.error().line();
    return {};
  }
  return (*make_tokenizer(*vocab, "test"))->encode(text, false, true);
}

// The ids are those of tokenizers 0.23.
TEST(KnownBugs, WhereMetaspacePutsASpace_openvino_tokenizers_565) {
  const auto with = [](const json& scheme, const std::string& text) {
    json step = {{"type", "Metaspace"}, {"replacement", "▁"}, {"split", false}};
    step.update(scheme);
    const json alone = metaspace_tokenizer(step);
    const json listed = metaspace_tokenizer({{"type", "Sequence"}, {"pretokenizers", {step}}});
    EXPECT_EQ(encoded(alone, text), encoded(listed, text));
    step["split"] = true;
    EXPECT_EQ(encoded(alone, text), encoded(metaspace_tokenizer(step), text));
    return encoded(alone, text);
  };
  const json first = {{"prepend_scheme", "first"}};
  EXPECT_THAT(with(first, "hi"), ElementsAre(6));
  EXPECT_THAT(with(first, "[INST] hi"), ElementsAre(2, 6));
  EXPECT_THAT(with(first, "[INST]hi"), ElementsAre(2, 7));
  EXPECT_THAT(with(first, " hi"), ElementsAre(6));
  EXPECT_THAT(with(first, "hi[INST]hi"), ElementsAre(6, 2, 7));
  EXPECT_THAT(with(first, "  hi"), ElementsAre(8, 6));
  for (const json& always :
       {json{{"prepend_scheme", "always"}}, json{{"add_prefix_space", true}}, json::object()}) {
    EXPECT_THAT(with(always, "[INST]hi"), ElementsAre(2, 6));
    EXPECT_THAT(with(always, "[INST] hi"), ElementsAre(2, 6));
    EXPECT_THAT(with(always, " hi"), ElementsAre(6));
    EXPECT_THAT(with(always, "▁hi"), ElementsAre(6));
  }
  for (const json& never : {json{{"prepend_scheme", "never"}}, json{{"add_prefix_space", false}},
                            json{{"prepend_scheme", "never"}, {"add_prefix_space", true}}}) {
    EXPECT_THAT(with(never, "hi"), ElementsAre(7));
    EXPECT_THAT(with(never, "[INST] hi"), ElementsAre(2, 6));
    EXPECT_THAT(with(never, "hi[INST]hi"), ElementsAre(7, 2, 7));
  }
}

TEST(KnownBugs, AddedTokensTakeSpacesAndStandAlone) {
  json root = metaspace_tokenizer({{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}});
  json& inst = root["added_tokens"][2];
  inst["lstrip"] = inst["rstrip"] = true;
  EXPECT_THAT(encoded(root, "hi [INST] \n\u3000hi"), ElementsAre(6, 2, 7));
  inst["lstrip"] = inst["rstrip"] = false;
  inst["content"] = "hi", inst["id"] = 9, inst["single_word"] = true;
  root["model"]["vocab"].erase("hi");
  root["model"]["vocab"]["[INST]"] = 7;
  root["model"]["merges"] = {"▁ h"};
  root["model"]["vocab"].erase("▁hi");
  root["model"]["vocab"]["[x]"] = 6;
  EXPECT_THAT(encoded(root, "hi hii"), ElementsAre(9, 3, 5, 5));
}

TEST(KnownBugs, TokensAreAddedBesideASentencepieceModel_llama_cpp_3633) {
  const TempFolder folder;
  const std::string model = folder.path() + "/tokenizer.model";
  std::filesystem::copy_file(TIERD_SOURCE_DIR "/tests/golden/tokenizer/plain.model", model);
  const auto plain = read_tokenizer_model(model);
  ASSERT_TRUE(plain.ok()) << plain.error().line();
  const auto size = static_cast<uint32_t>(plain->pieces.size());
  folder.write("added_tokens.json", json{{"<|turn|>", size}, {"<|tool|>", size + 1}}.dump());
  const auto encode = [&](const std::string& text) {
    const auto vocab = read_tokenizer_model(model);
    return (*make_tokenizer(*vocab, "test"))->encode(text, false, true);
  };
  EXPECT_THAT(encode("<|turn|><|tool|>"), ElementsAre(size, size + 1));
  const json token = {{"content", "<|tool|>"}, {"normalized", true}, {"special", false}};
  json first = token;
  first["content"] = "<|turn|>";
  folder.write("added_tokens.json", "{}");
  folder.write(
      "tokenizer_config.json",
      json{{"added_tokens_decoder", {{std::to_string(size), first}, {std::to_string(size + 1), token}}}}
          .dump());
  EXPECT_THAT(encode("<|turn|><|tool|>"), ElementsAre(size, size + 1));
  EXPECT_EQ(encode("a<|tool|>a").size(), encode("a<|turn|>a").size())
      << "the second is found as the first is";
}

// Writes the 256 pieces of GPT-2's byte alphabet, "(x" (256), and <|endoftext|> (257).
void write_byte_vocab(const TempFolder& folder) {
  json vocab;
  const auto utf8 = [](uint32_t code) {
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return std::string{static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
  };
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    vocab[utf8(printable ? byte : next++)] = byte;
  }
  vocab["(x"] = 256;
  vocab["<|endoftext|>"] = 257;
  folder.write("vocab.json", vocab.dump());
  folder.write("merges.txt", "#version: 0.2\n( x\n");
}

Result<std::vector<uint32_t>> encoded_in(const TempFolder& folder, const std::string& text) {
  TIERD_ASSIGN(const FoundVocab found, find_hf_vocab(folder.path(), 1000, {}));
  TIERD_ASSIGN(const auto tokenizer, make_tokenizer(*found.vocab, "test"));
  return tokenizer->encode(text, false, true);
}

TEST(KnownBugs, VocabAndMergesFollowTheirClass_llama_cpp_9673) {
  const auto with = [](const json& config, const char* model_type = "qwen2") {
    const TempFolder folder;
    write_byte_vocab(folder);
    folder.write("config.json", json{{"model_type", model_type}}.dump());
    folder.write("tokenizer_config.json", config.dump());
    const auto ids = encoded_in(folder, "(x");
    return ids.ok() ? std::to_string(ids->size()) : ids.error().line();
  };
  for (const char* name : {"Qwen2Tokenizer", "Qwen2TokenizerFast"})
    EXPECT_EQ(with({{"tokenizer_class", name}}), "1") << "one word, so one token";
  EXPECT_EQ(with(json::object()), "1") << "by the kind of model";
  for (const char* name : {"GPT2Tokenizer", "GPT2TokenizerFast", "CodeGenTokenizer", "GPTNeoXTokenizer"})
    EXPECT_EQ(with({{"tokenizer_class", name}}), "2") << "words end before letters";
  EXPECT_EQ(with(json::object(), "opt"), "2");
  EXPECT_THAT(with({{"tokenizer_class", "KlingonTokenizer"}}),
              HasSubstr("tokenizer_config.json: tokenizer_class: \"KlingonTokenizer\" is not supported"));
  EXPECT_EQ(with({{"tokenizer_class", "GPT2Tokenizer"}, {"add_prefix_space", true}}), "3") << "with a space";
  EXPECT_THAT(with({{"tokenizer_class", "Qwen2Tokenizer"}, {"add_prefix_space", true}}),
              HasSubstr("add_prefix_space: true is not supported with the rule \"qwen2\""));
}

TEST(KnownBugs, TokensAreAddedByFilesBeside_llama_cpp_3633) {
  const json turn = {{"content", "<|turn|>"}, {"special", true}, {"rstrip", true}};
  const auto with = [](const char* file, const json& root, const std::string& text) {
    const TempFolder folder;
    write_byte_vocab(folder);
    folder.write("tokenizer_config.json", "{}");
    folder.write(file, root.dump());
    const auto ids = encoded_in(folder, text);
    return ids.ok() ? *ids : std::vector<uint32_t>{kNoToken};
  };
  EXPECT_THAT(with("added_tokens.json", {{"<b>", 259}, {"<a>", 258}}, "<b>a<a>"), ElementsAre(259, 'a', 258));
  EXPECT_THAT(with("tokenizer_config.json", {{"added_tokens_decoder", {{"258", turn}}}}, "a<|turn|>  b"),
              ElementsAre('a', 258, 'b'));
  EXPECT_THAT(
      with("added_tokens.json", {{"<|im_start|>", 258}, {"<|im_end|>", 259}}, "<|im_start|><|im_end|>"),
      ElementsAre(258, 259));
  // Ids of other tokens, and ids far outside the vocabulary.
  EXPECT_THAT(with("added_tokens.json", {{"<a>", 5}}, ""), ElementsAre(kNoToken));
  EXPECT_THAT(with("added_tokens.json", {{"<a>", 4'000'000'000}}, ""), ElementsAre(kNoToken));
  EXPECT_THAT(with("added_tokens.json", {{"<a>", "x"}}, ""), ElementsAre(kNoToken));
}

TEST(KnownBugs, FieldsOfTokenizersThatAreRefusedByName) {
  const json step = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}};
  const auto refused = [&](const char* pointer, const json& value) {
    json root = metaspace_tokenizer(step);
    root[json::json_pointer(pointer)] = value;
    const TempFolder folder;
    const auto vocab = read_tokenizer_json(folder.write("tokenizer.json", root.dump()));
    return vocab.ok() ? "accepted" : vocab.error().line();
  };
  EXPECT_THAT(refused("/normalizer", {{"type", "Precompiled"}}), HasSubstr("normalizer \"Precompiled\""));
  EXPECT_THAT(refused("/normalizer", {{"type", "Prepend"}, {"prepend", "▁"}}),
              HasSubstr("prepend_scheme \"first\" is not supported together with the normalizer prepend"));
  EXPECT_THAT(refused("/pre_tokenizer/prepend_scheme", "last"), HasSubstr("prepend_scheme \"last\""));
  EXPECT_THAT(refused("/pre_tokenizer/replacement", "__"),
              HasSubstr("replacement: expected one character, found \"__\""));
  EXPECT_THAT(refused("/pre_tokenizer/split", "no"), HasSubstr("split: expected true or false"));
  EXPECT_THAT(refused("/post_processor", {{"type", "BertProcessing"}}),
              HasSubstr("post_processor \"BertProcessing\""));
  EXPECT_THAT(refused("/decoder", {{"type", "WordPiece"}}), HasSubstr("decoder \"WordPiece\""));
  EXPECT_THAT(refused("/model/dropout", 0.1), HasSubstr("model.dropout"));
  EXPECT_THAT(refused("/model/ignore_merges", "yes"), HasSubstr("ignore_merges: expected true or false"));
  EXPECT_THAT(refused("/model/unk_token", "<none>"), HasSubstr("model.unk_token: \"<none>\" is not in"));
}

// Returns the lines of standard error, and the error if the file is refused.
std::string lines_of_gguf(const std::function<void(GgufBuilder&)>& change, Vocab* vocab = nullptr) {
  const TempFolder folder;
  GgufBuilder b = tiny_gguf_llama();
  b.set_text("tokenizer.ggml.model", "llama");
  b.set_texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "", "", "b", "<|file_sep|>"});
  b.set_numbers<float>("tokenizer.ggml.scores", GgufType::f32, std::vector<float>(8, 0));
  b.set_numbers<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {2, 3, 3, 1, 1, 1, 1, 4});
  change(b);
  testing::internal::CaptureStderr();
  const auto source = open_source(folder.write("m.gguf", b.bytes()));
  const std::string lines = testing::internal::GetCapturedStderr();
  if (!source.ok()) return lines + source.error().line();
  if (vocab != nullptr) *vocab = *(*source)->vocab();
  return lines;
}

TEST(KnownBugs, KeysOfGgufTokenizersAreObeyedOrNamed) {
  const auto with_flag = [](const char* key) {
    return lines_of_gguf([&](GgufBuilder& b) { b.set_bool("tokenizer.ggml." + std::string(key), true); });
  };
  for (const char* key : {"remove_extra_whitespaces", "normalizer.lowercase", "normalizer.strip_accents"})
    EXPECT_THAT(with_flag(key), HasSubstr(std::string(key) + "\": true, supported is false"));
  for (const char* key : {"add_eos_token", "add_sep_token"})
    EXPECT_THAT(with_flag(key), HasSubstr(std::string(key) + "\": true is ignored"));
  EXPECT_THAT(with_flag("dropout"), HasSubstr("tokenizer.ggml.dropout\": an unknown key"));
  for (const char* key : {"precompiled_charsmap", "suppress_tokens"}) {
    EXPECT_THAT(lines_of_gguf([&](GgufBuilder& b) {
                  b.set_numbers<int32_t>("tokenizer.ggml." + std::string(key), GgufType::i32, {3});
                }),
                HasSubstr(std::string(key) + "\": 1 values, supported is an empty list"));
  }
  EXPECT_THAT(lines_of_gguf([](GgufBuilder& b) { b.set_text("tokenizer.ggml.model", "bert"); }),
              HasSubstr("\"bert\", supported are llama and gpt2; --tokenizer FILE"));
}

TEST(KnownBugs, TokensWithoutTextAndEndsOfFilledInCode) {
  Vocab vocab;
  const std::string lines = lines_of_gguf(
      [](GgufBuilder& b) { b.set("tokenizer.ggml.fim_pad_token_id", GgufType::u32, bytes_of(uint32_t{6})); },
      &vocab);
  EXPECT_THAT(lines, HasSubstr("tokenizer.ggml.tokens\": 2 tokens have no text"));
  EXPECT_EQ(vocab.pieces[5], "[EMPTY_5]");
  EXPECT_THAT(vocab.end_tokens, ElementsAre(2, 6, 7));
}

TEST(KnownBugs, EndsOfTurnOfAnyType_llama_cpp_6772) {
  for (const int32_t type : {1, 3, 4}) {
    const TempFolder folder;
    GgufBuilder b = tiny_gguf_llama();
    b.set_text("tokenizer.ggml.model", "llama");
    b.set_texts("tokenizer.ggml.tokens",
                {"<unk>", "<s>", "</s>", "a", "<|im_end|>", "<end_of_turn>", "b", "c"});
    b.set_numbers<float>("tokenizer.ggml.scores", GgufType::f32, std::vector<float>(8, 0));
    b.set_numbers<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {2, 3, 3, 1, type, type, 1, 1});
    const auto source = open_source(folder.write("m.gguf", b.bytes()));
    ASSERT_TRUE(source.ok()) << source.error().line();
    EXPECT_THAT((*source)->vocab()->end_tokens, ElementsAre(2, 4, 5)) << type;
  }
}

}  // namespace
}  // namespace tierd
