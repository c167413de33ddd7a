// Tokenizer files that are truncated, have flipped bits or are of another kind give one error line or a
// working vocabulary.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <limits>

#include "core/base/random.h"
#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/model/text/tokenizer.h"
#include "tests/model/text/files.h"

namespace tierd {
namespace {

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

std::string token(float score, const std::string& piece) {
  return raw(score) + raw(static_cast<int32_t>(piece.size())) + piece;
}

// Returns a file as llama2.c writes it, with its unusual BOS and EOS.
std::string tiny_bin() {
  std::string file = raw(int32_t{7});
  file += token(0, "<unk>") + token(0, "\n<s>\n") + token(0, "\n</s>\n");
  file += token(0, "<0x41>") + token(-1, " a") + token(-2, "a") + token(-3, " ");
  return file;
}

// Returns the error's text after the file name, or "none".
template <class Read>
std::string reader_error(const std::string& name, const std::string& text, const Read& read) {
  const std::string path = write_text(name, text);
  const Result<Vocab> vocab = read(path);
  if (vocab.ok()) return "none";
  EXPECT_TRUE(vocab.error().line().starts_with(path)) << vocab.error().line();
  EXPECT_EQ(vocab.error().line().find('\n'), std::string::npos) << vocab.error().line();
  return vocab.error().line().substr(path.size() + 2);
}

std::string bin_error(const std::string& text, uint32_t vocab_size = 0) {
  return reader_error("tokenizer.bin", text,
                      [&](const std::string& path) { return read_llama2c_tokenizer(path, vocab_size); });
}

TEST(Llama2cTokenizer, BecomesTheSentencePieceForm) {
  const auto vocab = read_llama2c_tokenizer(write_text("tokenizer.bin", tiny_bin()), 7);
  ASSERT_TRUE(vocab.ok()) << vocab.error().line();
  EXPECT_EQ(vocab->pieces, (std::vector<std::string>{"<unk>", "<s>", "</s>", "<0x41>", "▁a", "a", "▁"}));
  EXPECT_EQ(vocab->types[3], TokenType::byte);
  EXPECT_EQ(vocab->bos, 1u);
  EXPECT_EQ(vocab->eos, 2u);
  EXPECT_EQ(vocab->unknown, 0u);
  EXPECT_EQ(vocab->end_tokens, (std::vector<uint32_t>{1, 2}));
  const auto tokenizer = make_tokenizer(*vocab, "tiny");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().line();
  EXPECT_EQ((*tokenizer)->encode("a aa", true, false), (std::vector<uint32_t>{1, 4, 4, 5}));
}

TEST(Llama2cTokenizer, RefusesBrokenFiles) {
  EXPECT_EQ(bin_error(""), "offset 0: the file ends inside its header");
  EXPECT_EQ(bin_error(raw(int32_t{0})), "offset 0: the longest piece is 0 bytes; expected 1 to 65536");
  EXPECT_EQ(bin_error(raw(std::numeric_limits<int32_t>::max())),
            "offset 0: the longest piece is 2147483647 bytes; expected 1 to 65536");
  EXPECT_EQ(bin_error(raw(int32_t{-1})), "offset 0: the longest piece is -1 bytes; expected 1 to 65536");
  EXPECT_EQ(bin_error(raw(int32_t{7})), "offset 4: the file ends after 0 tokens; expected at least 3");
  EXPECT_EQ(bin_error(raw(int32_t{7}) + raw(0.0f) + raw(int32_t{-5}) + "abc"),
            "offset 8: token 0 has -5 bytes; expected 0 to 7");
  EXPECT_EQ(bin_error(raw(int32_t{7}) + raw(0.0f) + raw(int32_t{2000000000})),
            "offset 8: token 0 has 2000000000 bytes; expected 0 to 7");
  EXPECT_EQ(bin_error(raw(int32_t{7}) + token(std::numeric_limits<float>::quiet_NaN(), "a")),
            "offset 4: the score of token 0 is not finite");
  const std::string whole = tiny_bin();
  EXPECT_EQ(bin_error(whole, 8),
            "offset " + std::to_string(whole.size()) + ": the file ends after 7 tokens; expected 8");
  EXPECT_NE(bin_error(whole, 6).find("more tokens than the 6 of the model"), std::string::npos);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_NE(bin_error(whole.substr(0, bytes), 7), "none");
}

TEST(SentencePieceModel, RefusesOtherModels) {
  const auto error = [](const std::string& text) {
    return reader_error("tokenizer.model", text, read_tokenizer_model);
  };
  const std::string whole = read_text(kGoldenFolder + "plain.model");
  EXPECT_EQ(error(whole), "none");
  EXPECT_EQ(error(""), "is not a complete sentencepiece model");
  EXPECT_EQ(error("hello"), "is not a complete sentencepiece model");
  // The last field of a kind counts: a trainer whose model_type is unigram, a normalizer with a map.
  EXPECT_NE(error(whole + "\x12\x02\x18\x01").find("not a BPE model"), std::string::npos);
  EXPECT_NE(error(whole + "\x1a\x03\x12\x01x").find("character map"), std::string::npos);
  EXPECT_NE(error(whole + "\x1a\x02\x20\x01").find("removes extra white space"), std::string::npos);
  EXPECT_NE(error(whole + std::string("\x1a\x02\x28\x00", 4)).find("does not write spaces"),
            std::string::npos);
  for (size_t bytes = 0; bytes < whole.size(); bytes += 97)
    EXPECT_NE(error(whole.substr(0, bytes)), "none") << bytes;
}

TEST(TokenizerFile, IsKnownByItsContent) {
  const auto read = [](const std::string& name, const std::string& text) {
    return reader_error(name, text, [](const std::string& path) { return read_tokenizer_file(path, 0); });
  };
  EXPECT_EQ(read("a", read_text(kGoldenFolder + "plain.model")), "none");
  EXPECT_EQ(read("b", read_text(kGoldenFolder + "gpt2.json")), "none");
  EXPECT_EQ(read("c", tiny_bin()), "none");
  EXPECT_EQ(read("d", ""), "is empty");
  EXPECT_NE(read("e", "IQ== 0\nIg== 1\n").find("tiktoken"), std::string::npos);
  EXPECT_NE(read("f", "GGUF\x03").find("is not a tokenizer file"), std::string::npos);
  EXPECT_NE(read("g", "x").find("is not a tokenizer file"), std::string::npos);
}

TEST(TokenizerFile, FindsTheMergesBesideTheVocabulary) {
  const std::string vocab = R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})";
  const std::string path = write_text("tiny-vocab.json", vocab);
  auto read = read_tokenizer_file(path, 0);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Code::not_found);
  EXPECT_TRUE(read.error().origin.ends_with("merges.txt"));
  write_text("tiny-merges.txt", "#version: 0.2\r\na b\r\n\r\n");
  write_text("tokenizer_config.json", R"({"add_bos_token": true})");
  read = read_tokenizer_file(path, 0);
  ASSERT_TRUE(read.ok()) << read.error().line();
  EXPECT_EQ(read->kind, VocabKind::byte_bpe);
  EXPECT_EQ(read->merges, (std::vector<std::string>{"a b"}));
  EXPECT_EQ(read->bos, 3u);
  EXPECT_EQ(read->end_tokens, (std::vector<uint32_t>{3}));
  EXPECT_EQ(read->types[3], TokenType::control);
  EXPECT_TRUE(read->add_bos);
  for (const char* bad : {"a", "a b c", " b", "a "}) {
    const std::string merges = write_text("tiny-merges.txt", std::string("#version: 0.2\n") + bad + "\n");
    read = read_tokenizer_file(path, 0);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().line(),
              merges + ": line 2: expected two pieces with a space between, found \"" + bad + "\"");
  }
}

TEST(TokenizerFile, OnlyRegularFiles) {
  const std::string folder = testing::TempDir();
  EXPECT_EQ(read_tokenizer_file(folder, 0).code(), Code::invalid_argument);
  EXPECT_EQ(read_tokenizer_file(folder + "/there/is/none", 0).code(), Code::not_found);
  const std::string pipe = write_text("pipe", "");
  ASSERT_EQ(std::remove(pipe.c_str()), 0);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(read_tokenizer_file(pipe, 0).code(), Code::invalid_argument) << "opening it would wait for ever";
  std::remove(pipe.c_str());
}

// An accepted file must also give a tokenizer that encodes.
TEST(TokenizerFile, SurvivesFlippedBytes) {
  Random random(5);
  for (const char* name : {"plain.model", "unknown.model", "gpt2.json", "llama.json"}) {
    const std::string whole = read_text(kGoldenFolder + name);
    ASSERT_FALSE(whole.empty());
    for (int round = 0; round < 100; ++round) {
      std::string text = whole;
      for (uint32_t n = 1 + random.below(3); n > 0; --n) {
        text[random.below(static_cast<uint32_t>(text.size()))] = static_cast<char>(random.below(256));
      }
      const auto vocab = read_tokenizer_file(write_text("flipped", text), 0);
      if (!vocab.ok()) continue;
      const auto tokenizer = make_tokenizer(*vocab, name);
      if (!tokenizer.ok()) continue;
      (*tokenizer)->decode((*tokenizer)->encode("The ships passed, 12 of them é \xff", true, true), true);
    }
  }
}

}  // namespace
}  // namespace tierd
