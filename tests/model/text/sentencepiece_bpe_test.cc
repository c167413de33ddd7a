#include "core/model/text/sentencepiece_bpe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"

namespace tierd {
namespace {

constexpr uint32_t kFirst = 259;  // after <unk>, <s>, </s> and 256 bytes

// Returns a vocabulary with the pieces from kFirst on; earlier pieces have higher scores.
Vocab tiny_piece_vocab(const std::vector<std::string>& pieces, bool bytes = true) {
  Vocab vocab;
  const auto add = [&](const std::string& piece, float score, TokenType type) {
    vocab.pieces.push_back(piece);
    vocab.scores.push_back(score);
    vocab.types.push_back(type);
  };
  add("<unk>", 0, TokenType::unknown);
  add("<s>", 0, TokenType::control);
  add("</s>", 0, TokenType::control);
  if (bytes) {
    for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), 0, TokenType::byte);
  }
  float score = 0;
  for (const std::string& piece : pieces) add(piece, score--, TokenType::normal);
  vocab.unknown = 0;
  vocab.bos = 1;
  vocab.eos = 2;
  return vocab;
}

const std::vector<std::string> kPieces = {"th", "▁the", "the", "▁", "t", "h", "e", "a", "aa", "aaaa", "é"};
constexpr uint32_t kTh = kFirst, kSpaceThe = kFirst + 1, kThe = kFirst + 2, kSpace = kFirst + 3,
                   kA = kFirst + 7, kAa = kFirst + 8, kAaaa = kFirst + 9;

std::unique_ptr<Tokenizer> make(Vocab vocab) {
  auto made = make_tokenizer(std::move(vocab), "tiny");
  EXPECT_TRUE(made.ok()) << made.error().line();
  return std::move(made).value();
}

using Ids = std::vector<uint32_t>;
constexpr uint32_t byte_id(uint8_t byte) {
  return 3 + byte;
}

TEST(SentencePieceBpe, MergesByScore) {
  const auto t = make(tiny_piece_vocab(kPieces));
  EXPECT_EQ(t->encode("the", false, false), (Ids{kSpaceThe}));
  EXPECT_EQ(t->encode("the the", true, false), (Ids{1, kSpaceThe, kSpaceThe}));
  EXPECT_EQ(t->encode("aaaaa", false, false), (Ids{kSpace, kAaaa, kA}));
  EXPECT_EQ(t->encode("th", false, false), (Ids{kSpace, kTh}));
  EXPECT_TRUE(t->encode("", false, false).empty());
  EXPECT_EQ(t->encode("", true, false), (Ids{1}));
}

TEST(SentencePieceBpe, SpacePrefix) {
  Vocab vocab = tiny_piece_vocab(kPieces);
  vocab.add_space_prefix = false;
  const auto t = make(vocab);
  EXPECT_EQ(t->encode("the", false, false), (Ids{kThe}));
  EXPECT_EQ(t->decode({kSpaceThe}), " the");
  const auto prefixed = make(tiny_piece_vocab(kPieces));
  EXPECT_EQ(prefixed->decode({1, kSpaceThe, kSpaceThe}), "the the");
  EXPECT_EQ(prefixed->decode({kThe, kSpaceThe}), "the the");
  EXPECT_EQ(prefixed->piece(kSpaceThe, false), " the");
  // Only sentencepiece's own prefix mark is removed, not a space that was written as a byte.
  EXPECT_EQ(prefixed->decode({byte_id(' '), kThe}), " the");
}

TEST(SentencePieceBpe, ControlTokens) {
  const auto t = make(tiny_piece_vocab(kPieces));
  EXPECT_EQ(t->encode("the</s>the", false, true), (Ids{kSpaceThe, 2, kSpaceThe}));
  EXPECT_EQ(t->encode("</s>", true, true), (Ids{1, 2}));
  const Ids plain = t->encode("</s>", false, false);
  EXPECT_EQ(plain, (Ids{kSpace, byte_id('<'), byte_id('/'), byte_id('s'), byte_id('>')}));
  EXPECT_EQ(t->decode(plain), "</s>");
  EXPECT_EQ(t->decode({1, kSpaceThe, 2}), "the");
  EXPECT_EQ(t->decode({1, kSpaceThe, 2}, true), "<s> the</s>");
  EXPECT_EQ(t->piece(99999, true), "");
}

TEST(SentencePieceBpe, UserDefinedPiecesAreNeverCut) {
  Vocab vocab = tiny_piece_vocab(kPieces);
  vocab.pieces.emplace_back("th▁e");
  vocab.scores.push_back(0);
  vocab.types.push_back(TokenType::user_defined);
  const auto keep = static_cast<uint32_t>(vocab.pieces.size() - 1);
  const auto t = make(vocab);
  EXPECT_EQ(t->encode("ath eth e", false, false), (Ids{kSpace, kA, keep, keep}));
  EXPECT_EQ(t->decode({keep}), "th e");
}

TEST(SentencePieceBpe, UnusedPiecesAreTakenApart) {
  Vocab vocab = tiny_piece_vocab(kPieces);
  vocab.types[kAaaa] = TokenType::unused;
  EXPECT_EQ(make(vocab)->encode("aaaa", false, false), (Ids{kSpace, kAa, kAa}));
  vocab.types[kAa] = TokenType::unused;
  EXPECT_EQ(make(vocab)->encode("aaaa", false, false), (Ids{kSpace, kA, kA, kA, kA}));
}

TEST(SentencePieceBpe, UnknownCharacters) {
  const auto bytes = make(tiny_piece_vocab(kPieces));
  EXPECT_EQ(bytes->encode("ä", false, false), (Ids{kSpace, byte_id(0xc3), byte_id(0xa4)}));
  EXPECT_EQ(bytes->piece(byte_id(0xc3), false), "\xc3");
  const auto plain = make(tiny_piece_vocab(kPieces, false));
  const uint32_t space = kSpace - 256;
  EXPECT_EQ(plain->encode("äöa\xff", false, false), (Ids{space, 0, kA - 256, 0}))
      << "a run is one unknown token";
  EXPECT_EQ(plain->decode({kA - 256, 0}), "a \u2047 ");
}

TEST(SentencePieceBpe, AnyBytesComeBack) {
  const auto t = make(tiny_piece_vocab(kPieces));
  Random random(4);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (uint32_t n = random.below(100); n > 0; --n) {
      text.push_back(static_cast<char>(random.below(2) ? random.below(256) : "the a\n"[random.below(6)]));
    }
    if (text.find(kSpaceMark) != std::string::npos) continue;  // a mark in the text becomes a space
    ASSERT_EQ(t->decode(t->encode(text, true, false)), text);
  }
}

TEST(SentencePieceBpe, OneLongWord) {
  const auto t = make(tiny_piece_vocab(kPieces));
  EXPECT_EQ(t->encode(std::string(1 << 20, 'a'), false, false).size(), (1u << 18) + 1);
  EXPECT_EQ(t->encode(std::string(1 << 20, ' '), false, false).size(), (1u << 20) + 1);
}

TEST(SentencePieceBpe, ReadsBytePieces) {
  EXPECT_EQ(byte_of_piece("<0x00>"), 0);
  EXPECT_EQ(byte_of_piece("<0xfF>"), 255);
  for (const char* bad : {"", "<0x0>", "<0x000>", "<0xG0>", "<0x0G>", "0x0000", "<0x 0>"}) {
    EXPECT_EQ(byte_of_piece(bad), -1) << bad;
  }
}

std::string piece_error(Vocab vocab) {
  const auto made = make_tokenizer(std::move(vocab), "bad.gguf");
  return made.ok() ? "none" : made.error().line();
}

TEST(SentencePieceBpe, RefusesBrokenVocabularies) {
  Vocab vocab = tiny_piece_vocab(kPieces);
  vocab.scores.pop_back();
  EXPECT_EQ(piece_error(vocab), "bad.gguf: 269 scores for 270 tokens, expected one for each");
  vocab = tiny_piece_vocab(kPieces);
  vocab.scores[5] = std::nanf("");
  EXPECT_EQ(piece_error(vocab), "bad.gguf: the score of token 5 is not a number");
  vocab = tiny_piece_vocab(kPieces);
  vocab.pieces[5] = "<0xZZ>";
  EXPECT_EQ(piece_error(vocab),
            "bad.gguf: byte token 5 is \"<0xZZ>\"; expected each of <0x00> to <0xFF> exactly once");
  vocab = tiny_piece_vocab(kPieces, false);
  vocab.unknown = kNoToken;
  EXPECT_NE(piece_error(vocab).find("neither 256 byte tokens nor an unknown token"), std::string::npos);
}

}  // namespace
}  // namespace tierd
