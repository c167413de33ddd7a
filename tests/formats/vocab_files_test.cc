#include "core/formats/vocab_files.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/formats/gguf_vocab.h"
#include "core/model/text/tokenizer.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/gguf_builder.h"
#include "tests/model/text/peer_vectors.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// Writes the 256 pieces of GPT-2's byte alphabet, then "ab" (256) and <|endoftext|> (257).
void write_gpt2(const TempFolder& folder) {
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
  vocab["ab"] = 256;
  vocab["<|endoftext|>"] = 257;
  folder.write("vocab.json", vocab.dump());
  folder.write("merges.txt", "#version: 0.2\na b\n");
}

// Returns llama2.c's tokenizer.bin: the longest length, then score, length and bytes of each piece.
std::string llama2c_tokenizer(const std::vector<std::string>& pieces) {
  std::string bytes("\7\0\0\0", 4);
  for (const std::string& piece : pieces) {
    bytes += std::string(4, '\0') + std::string{static_cast<char>(piece.size()), 0, 0, 0} + piece;
  }
  return bytes;
}

std::vector<std::string> llama2c_pieces(const std::string& last) {
  std::vector<std::string> pieces = {"<unk>", "\n<s>\n", "\n</s>\n"};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    pieces.emplace_back(text);
  }
  pieces.push_back(last);
  return pieces;
}

TEST(VocabFiles, AFolderWithoutATokenizerHasNone) {
  const TempFolder folder;
  const auto found = find_hf_vocab(folder.path(), 8, {});
  ASSERT_TRUE(found.ok()) << found.error().line();
  EXPECT_FALSE(found->vocab);
  EXPECT_THAT(found->files, testing::IsEmpty());
}

TEST(VocabFiles, TheConfigurationNamesSpecialTokens) {
  const TempFolder folder;
  write_gpt2(folder);
  folder.write("config.json", R"({"bos_token_id": 3, "eos_token_id": 4})");
  folder.write("generation_config.json", R"({"eos_token_id": [5, 4], "bos_token_id": null})");
  folder.write("tokenizer_config.json", R"({"add_bos_token": true})");
  const auto found = find_hf_vocab(folder.path(), 258, {});
  ASSERT_TRUE(found.ok()) << found.error().line();
  ASSERT_TRUE(found->vocab);
  EXPECT_EQ(found->vocab->bos, 3u);
  EXPECT_EQ(found->vocab->eos, 5u);
  EXPECT_THAT(found->vocab->end_tokens, testing::IsSupersetOf({4u, 5u}));
  EXPECT_TRUE(found->vocab->add_bos);
  EXPECT_EQ(found->files.size(), 5u);
}

TEST(VocabFiles, SpecialIdsThatNoTokenHasArePassedOver) {
  const TempFolder folder;
  write_gpt2(folder);
  folder.write("config.json", R"({"bos_token_id": 258, "eos_token_id": [2, -1]})");
  testing::internal::CaptureStderr();
  const auto found = find_hf_vocab(folder.path(), 300, {});
  const std::string lines = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(found.ok()) << found.error().line();
  EXPECT_EQ(found->vocab->bos, 257u) << "as the tokenizer has it";
  EXPECT_EQ(found->vocab->eos, 2u);
  EXPECT_THAT(lines, HasSubstr("config.json: bos_token_id: found 258, the tokenizer has 258"));
  EXPECT_THAT(lines, HasSubstr("config.json: eos_token_id: found -1"));
  folder.write("config.json", R"({"bos_token_id": "<s>"})");
  EXPECT_THAT(find_hf_vocab(folder.path(), 300, {}).error().line(),
              HasSubstr("config.json: bos_token_id: found \"<s>\", expected a whole number"));
}

TEST(VocabFiles, ACheckpointPrefersTheTokenizerOfItsSize) {
  const TempFolder folder;
  const std::string checkpoint = folder.path() + "/m.bin";
  EXPECT_FALSE(find_llama2c_vocab(checkpoint, 260, {})->vocab);
  folder.write("tokenizer.bin", llama2c_tokenizer(llama2c_pieces("x")));
  const auto plain = find_llama2c_vocab(checkpoint, 260, {});
  ASSERT_TRUE(plain.ok()) << plain.error().line();
  EXPECT_EQ(plain->vocab->pieces.back(), "x");
  folder.write("tok260.bin", llama2c_tokenizer(llama2c_pieces("y")));
  EXPECT_EQ(find_llama2c_vocab(checkpoint, 260, {})->vocab->pieces.back(), "y");
  const std::string chosen = folder.write("mine.bin", llama2c_tokenizer(llama2c_pieces("z")));
  const auto found = find_llama2c_vocab(checkpoint, 260, {.tokenizer = chosen});
  ASSERT_TRUE(found.ok()) << found.error().line();
  EXPECT_EQ(found->vocab->pieces.back(), "z");
  EXPECT_THAT(found->files, ElementsAre(chosen));
}

Result<std::vector<uint32_t>> encoded_by(const std::string& architecture, const std::string& text) {
  const TempFolder folder;
  GgufBuilder b = tiny_gguf_llama();
  b.set_text("general.architecture", architecture);
  b.set_text("tokenizer.ggml.model", "llama");
  b.set_texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "▁", "<|user|>", "▁a", "\n"});
  b.set_numbers<float>("tokenizer.ggml.scores", GgufType::f32, {0, 0, 0, -2, -3, 0, -1, -4});
  b.set_numbers<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {2, 3, 4, 1, 1, 3, 1, 1});
  TIERD_ASSIGN(const File file, File::open(folder.write("m.gguf", b.bytes())));
  TIERD_ASSIGN(const GgufHeader header, GgufHeader::read(file));
  TIERD_ASSIGN(const auto vocab, read_gguf_vocab(file, header, 8));
  TIERD_ASSIGN(const auto tokenizer, make_tokenizer(*vocab, "test"));
  return tokenizer->encode(text, true, true);
}

TEST(GgufVocab, TokensOfPhi3TakeTheSpacesAfterThem) {
  const std::string text = "<|user|> \n a</s> a<s> a";
  EXPECT_THAT(*encoded_by("llama", text), ElementsAre(1, 5, 4, 4, 7, 6, 2, 6, 1, 4, 6));
  EXPECT_THAT(*encoded_by("phi3", text), ElementsAre(1, 5, 6, 2, 6, 1, 4, 6));
}

// llama.cpp's vocabulary files with its inputs and expected ids, if they are beside the project.
class PeerVocab : public testing::TestWithParam<const char*> {};

TEST_P(PeerVocab, EncodesAsLlamaCppDoes) {
  const std::string name = GetParam();
  const std::string path = peer_file(name + ".gguf");
  if (path.empty()) GTEST_SKIP() << "no vocabulary of " << name << " on this machine";

  const auto file = File::open(path);
  ASSERT_TRUE(file.ok()) << file.error().line();
  const auto header = GgufHeader::read(*file);
  ASSERT_TRUE(header.ok()) << header.error().line();
  const auto tokens = header->strings(*file, "tokenizer.ggml.tokens", 1u << 20);
  ASSERT_TRUE(tokens.ok()) << tokens.error().line();
  const auto vocab = read_gguf_vocab(*file, *header, static_cast<uint32_t>(tokens->size()));
  ASSERT_TRUE(vocab.ok()) << vocab.error().line();
  expect_peer_vectors(**vocab, name);
}

INSTANTIATE_TEST_SUITE_P(Files, PeerVocab,
                         testing::Values("gpt-2", "llama-spm", "falcon", "phi-3", "deepseek-coder"),
                         [](const auto& vocabulary) {
                           std::string name = vocabulary.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tierd
