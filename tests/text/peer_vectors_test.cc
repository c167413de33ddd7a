// The inputs and expected ids that llama.cpp keeps for its vocabularies, against the tokenizers' own files.
#include <gtest/gtest.h>

#include <sstream>

#include "core/text/tokenizer.h"
#include "tests/text/files.h"
#include "tests/text/shared_files.h"

namespace tierd {
namespace {

constexpr const char* kFolder = "data/tokenizers/";
constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
constexpr size_t kInputs = 46;

struct Vector {
  std::string text;
  std::vector<uint32_t> ids;
};

std::vector<Vector> read_vectors(const std::string& name) {
  const std::string inputs = shared_file(kFolder + ("llama.cpp-vectors/ggml-vocab-" + name + ".gguf.inp"));
  const std::string outputs = shared_file(kFolder + ("llama.cpp-vectors/ggml-vocab-" + name + ".gguf.out"));
  std::vector<Vector> vectors;
  if (inputs.empty() || outputs.empty()) return vectors;
  const std::string text = read_text(inputs);
  std::istringstream ids(read_text(outputs));
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find(kSeparator, at);
    if (end == std::string::npos) break;
    Vector vector;
    vector.text = text.substr(at, end - at);
    std::string line;
    std::getline(ids, line);
    std::istringstream numbers(line);
    for (uint32_t id = 0; numbers >> id;) vector.ids.push_back(id);
    vectors.push_back(std::move(vector));
    at = end + kSeparator.size();
  }
  return vectors;
}

void expect_vectors(const Result<Vocab>& vocab, const std::string& name) {
  const std::vector<Vector> vectors = read_vectors(name);
  if (vectors.empty()) GTEST_SKIP() << "no vectors of " << name << " on this machine";
  ASSERT_EQ(vectors.size(), kInputs);
  ASSERT_TRUE(vocab.ok()) << vocab.error().line();
  auto tokenizer = make_tokenizer(*vocab, name);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().line();
  size_t equal = 0;
  for (const Vector& vector : vectors) {
    const std::vector<uint32_t> ids = (*tokenizer)->encode(vector.text, false, false);
    EXPECT_EQ(ids, vector.ids) << vector.text;
    EXPECT_EQ((*tokenizer)->decode(ids), vector.text);
    if (ids == vector.ids) ++equal;
  }
  EXPECT_EQ(equal, kInputs);
}

TEST(PeerVectors, Gpt2) {
  const std::string vocab = shared_file(std::string(kFolder) + "gpt2/gpt2_vocab_50257.json");
  const std::string merges = shared_file(std::string(kFolder) + "gpt2/gpt2-merges.txt");
  if (vocab.empty() || merges.empty()) GTEST_SKIP() << "no GPT-2 vocabulary on this machine";
  expect_vectors(read_gpt2_files(vocab, merges), "gpt-2");
  write_text("merges.txt", read_text(merges));
  expect_vectors(read_tokenizer_file(write_text("vocab.json", read_text(vocab)), 0), "gpt-2");
}

TEST(PeerVectors, LlamaSentencePieceModel) {
  const std::string model = shared_file(std::string(kFolder) + "llama2/tokenizer.model");
  if (model.empty()) GTEST_SKIP() << "no Llama-2 tokenizer on this machine";
  expect_vectors(read_tokenizer_model(model), "llama-spm");
  expect_vectors(read_tokenizer_file(model, 0), "llama-spm");
}

TEST(PeerVectors, LlamaTokenizerBin) {
  const std::string file = shared_file(std::string(kFolder) + "llama2/tokenizer.bin");
  if (file.empty()) GTEST_SKIP() << "no tokenizer.bin on this machine";
  expect_vectors(read_llama2c_tokenizer(file, 32000), "llama-spm");
  expect_vectors(read_tokenizer_file(file, 0), "llama-spm");
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

TEST(PeerVectors, GptNeoxTokenizerJson) {
  const std::string file = shared_file(std::string(kFolder) + "gptneox/20B_tokenizer.json");
  if (file.empty()) GTEST_SKIP() << "no GPT-NeoX tokenizer on this machine";
  const auto vocab = read_tokenizer_file(file, 0);
  ASSERT_TRUE(vocab.ok()) << vocab.error().line();
  auto tokenizer = make_tokenizer(*vocab, file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().line();
  // As the Hugging Face library has it; runs of spaces are tokens of their own there.
  EXPECT_EQ((*tokenizer)->encode("Hello world\n    return  x", false, false),
            (std::vector<uint32_t>{12092, 1533, 187, 50274, 2309, 50276, 89}));
}

}  // namespace
}  // namespace tierd
