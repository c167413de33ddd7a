// Compares the tokenizers' own files with the ids that llama.cpp expects. tests/store has its GGUF files.
#include <gtest/gtest.h>

#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/model/text/tokenizer.h"
#include "tests/model/text/files.h"
#include "tests/model/text/peer_vectors.h"
#include "tests/model/text/shared_files.h"
#include "tests/model/text/tiktoken_file.h"

namespace tierd {
namespace {

constexpr const char* kFolder = "data/tokenizers/";

TEST(PeerVectors, Gpt2) {
  const std::string vocab = shared_file(std::string(kFolder) + "gpt2/gpt2_vocab_50257.json");
  const std::string merges = shared_file(std::string(kFolder) + "gpt2/gpt2-merges.txt");
  if (vocab.empty() || merges.empty()) GTEST_SKIP() << "no GPT-2 vocabulary on this machine";
  expect_peer_vectors(read_gpt2_files(vocab, merges), "gpt-2");
  write_text("merges.txt", read_text(merges));
  expect_peer_vectors(read_tokenizer_file(write_text("vocab.json", read_text(vocab)), 0), "gpt-2");
}

TEST(PeerVectors, LlamaSentencePieceModel) {
  const std::string model = shared_file(std::string(kFolder) + "llama2/tokenizer.model");
  if (model.empty()) GTEST_SKIP() << "no Llama-2 tokenizer on this machine";
  expect_peer_vectors(read_tokenizer_model(model), "llama-spm");
  expect_peer_vectors(read_tokenizer_file(model, 0), "llama-spm");
}

TEST(PeerVectors, LlamaTokenizerBin) {
  const std::string file = shared_file(std::string(kFolder) + "llama2/tokenizer.bin");
  if (file.empty()) GTEST_SKIP() << "no tokenizer.bin on this machine";
  expect_peer_vectors(read_llama2c_tokenizer(file, 32000), "llama-spm");
  expect_peer_vectors(read_tokenizer_file(file, 0), "llama-spm");
}

TEST(PeerVectors, Llama2cTokenizerIsTheSentencePieceModel) {
  const std::string model = shared_file(std::string(kFolder) + "llama2/tokenizer.model");
  const std::string file = shared_file(std::string(kFolder) + "llama2/tokenizer.bin");
  if (model.empty() || file.empty()) GTEST_SKIP() << "no Llama-2 tokenizers on this machine";
  const auto a = read_tokenizer_model(model);
  const auto b = read_llama2c_tokenizer(file, 32000);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->pieces, b->pieces);
  EXPECT_EQ(a->scores, b->scores);
  EXPECT_EQ(a->types, b->types);
}

TEST(PeerVectors, Llama3Tiktoken) {
  const std::string model = shared_file(std::string(kFolder) + "llama3/tokenizer.model");
  if (model.empty()) GTEST_SKIP() << "no Llama-3 tokenizer on this machine";
  expect_peer_vectors(vocab_of_tiktoken(read_text(model), "llama-bpe"), "llama-bpe");
}

TEST(PeerVectors, GptNeoxTokenizerJson) {
  const std::string file = shared_file(std::string(kFolder) + "gptneox/20B_tokenizer.json");
  if (file.empty()) GTEST_SKIP() << "no GPT-NeoX tokenizer on this machine";
  const auto vocab = read_tokenizer_file(file, 0);
  ASSERT_TRUE(vocab.ok()) << vocab.error().line();
  auto tokenizer = make_tokenizer(*vocab, file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().line();
  // The ids of the Hugging Face library, in which runs of spaces are tokens.
  EXPECT_EQ((*tokenizer)->encode("Hello world\n    return  x", false, false),
            (std::vector<uint32_t>{12092, 1533, 187, 50274, 2309, 50276, 89}));
}

}  // namespace
}  // namespace tierd
