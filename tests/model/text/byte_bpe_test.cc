#include "core/model/text/byte_bpe.h"

#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/model/text/byte_alphabet.h"

namespace tierd {
namespace {

// The 256 bytes are tokens 0 to 255, followed by the merged tokens, a control token and a user-defined token.
Vocab tiny_byte_vocab() {
  Vocab vocab;
  vocab.kind = VocabKind::byte_bpe;
  for (uint32_t byte = 0; byte < 256; ++byte)
    vocab.pieces.push_back(byte_character(static_cast<uint8_t>(byte)));
  vocab.merges = {"t h", "th e", "Ġ the", "a a", "aa aa", "Ã ©"};
  for (const char* piece : {"th", "the", "Ġthe", "aa", "aaaa", "Ã©"}) vocab.pieces.emplace_back(piece);
  vocab.types.assign(vocab.pieces.size(), TokenType::normal);
  vocab.pieces.emplace_back("<|end|>");
  vocab.types.push_back(TokenType::control);
  vocab.pieces.emplace_back("[KEEP it]");
  vocab.types.push_back(TokenType::user_defined);
  vocab.bos = vocab.eos = 262;
  return vocab;
}

std::unique_ptr<Tokenizer> tiny() {
  auto made = make_tokenizer(tiny_byte_vocab(), "tiny");
  EXPECT_TRUE(made.ok()) << made.error().line();
  return std::move(made).value();
}

using Ids = std::vector<uint32_t>;

TEST(ByteBpe, MergesByRank) {
  const auto t = tiny();
  EXPECT_EQ(t->encode("the the", false, false), (Ids{257, 258}));
  EXPECT_EQ(t->encode("aaaaa", false, false), (Ids{260, 'a'}));
  EXPECT_EQ(t->encode("é", false, false), (Ids{261}));
  EXPECT_TRUE(t->encode("", false, false).empty());
}

TEST(ByteBpe, SpecialTokens) {
  const auto t = tiny();
  EXPECT_EQ(t->encode("the<|end|>", true, true), (Ids{262, 257, 262}));
  EXPECT_EQ(t->encode("<|", true, false), (Ids{262, '<', '|'}));
  EXPECT_EQ(t->encode("a[KEEP it]a", false, false), (Ids{'a', 263, 'a'}));
  EXPECT_EQ(t->decode({257, 262, 263}), "the[KEEP it]");
  EXPECT_EQ(t->decode({257, 262}, true), "the<|end|>");
  EXPECT_EQ(t->piece(9999, true), "") << "out of range";

  Vocab vocab = tiny_byte_vocab();
  vocab.add_bos = false;
  EXPECT_EQ((*make_tokenizer(vocab, "tiny"))->encode("a", true, false), (Ids{'a'}));
}

TEST(ByteBpe, AnyBytesComeBack) {
  const auto t = tiny();
  Random random(3);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (uint32_t n = random.below(100); n > 0; --n) {
      text.push_back(static_cast<char>(random.below(2) ? random.below(256) : "the a\n"[random.below(6)]));
    }
    const Ids ids = t->encode(text, false, false);
    ASSERT_EQ(t->decode(ids), text);
    std::string streamed;
    for (const uint32_t id : ids) streamed += t->piece(id, false);
    ASSERT_EQ(streamed, text);
  }
}

TEST(ByteBpe, OneLongWord) {
  const auto t = tiny();
  EXPECT_EQ(t->encode(std::string(1 << 20, 'a'), false, false), Ids(1 << 18, 260));
}

TEST(ByteBpe, WholeWordsFirstWhereTheFamilySaysSo) {
  Vocab vocab = tiny_byte_vocab();
  vocab.pieces.emplace_back("xyz");  // no merge makes it
  vocab.types.push_back(TokenType::normal);
  EXPECT_EQ((*make_tokenizer(vocab, "tiny"))->encode("xyz", false, false), (Ids{'x', 'y', 'z'}));
  vocab.pre_tokenizer = "llama-bpe";
  EXPECT_EQ((*make_tokenizer(vocab, "tiny"))->encode("xyz", false, false), (Ids{264}));
}

TEST(ByteBpe, BytesThatTheVocabularyLacks) {
  Vocab vocab = tiny_byte_vocab();
  vocab.pieces[0xfe] = "other";
  EXPECT_EQ((*make_tokenizer(vocab, "tiny"))->encode("a\xfe\xfd", false, false), (Ids{'a', 0xfd}));
  vocab.unknown = 262;
  EXPECT_EQ((*make_tokenizer(vocab, "tiny"))->encode("a\xfe", false, false), (Ids{'a', 262}));
}

std::string byte_error(const Vocab& vocab) {
  const auto made = make_tokenizer(vocab, "bad.gguf");
  return made.ok() ? "none" : made.error().line();
}

TEST(ByteBpe, RefusesBrokenVocabularies) {
  Vocab vocab = tiny_byte_vocab();
  vocab.merges.emplace_back("q q");
  EXPECT_EQ(byte_error(vocab), "bad.gguf: merge 6 (\"q q\") needs \"qq\", which is not in the vocabulary");
  for (const char* merge : {"", " ", "th", "th ", " th"}) {
    vocab = tiny_byte_vocab();
    vocab.merges.emplace_back(merge);
    EXPECT_NE(byte_error(vocab).find("bad.gguf: merge 6"), std::string::npos) << merge;
  }
  vocab = tiny_byte_vocab();
  vocab.pieces[7] = vocab.pieces[5];
  EXPECT_NE(byte_error(vocab).find("tokens 5 and 7 are both"), std::string::npos);
  vocab = tiny_byte_vocab();
  vocab.types.pop_back();
  EXPECT_EQ(byte_error(vocab), "bad.gguf: 263 token types for 264 tokens, expected one for each");
  vocab = tiny_byte_vocab();
  vocab.bos = 264;
  EXPECT_EQ(byte_error(vocab), "bad.gguf: the BOS token is 264, but there are only 264 tokens");
  vocab = tiny_byte_vocab();
  vocab.end_tokens = {3, 4000000000u};
  EXPECT_EQ(byte_error(vocab), "bad.gguf: the end token is 4000000000, but there are only 264 tokens");
  vocab = tiny_byte_vocab();
  vocab.pre_tokenizer = "";
  EXPECT_NE(byte_error(vocab).find("unknown pre-tokenizer \"\""), std::string::npos);
  EXPECT_EQ(byte_error(Vocab{}), "bad.gguf: the vocabulary has no tokens");
}

}  // namespace
}  // namespace tierd
