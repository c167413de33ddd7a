#include "core/model/text/ranked_bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Pieces of "hi" and "▁", and an unknown token.
Vocab hi_vocab() {
  Vocab vocab;
  vocab.kind = VocabKind::ranked_bpe;
  vocab.pieces = {"<unk>", "h", "i", "hi", "▁", "▁hi", "<x>"};
  vocab.types.assign(vocab.pieces.size(), TokenType::normal);
  vocab.types[6] = TokenType::control;
  vocab.merges = {"h i", "▁ hi"};
  vocab.unknown = 0;
  vocab.added_tokens = std::vector<AddedToken>{{.token = 6}};
  return vocab;
}

std::unique_ptr<Tokenizer> ranked(Vocab vocab) {
  auto made = make_tokenizer(std::move(vocab), "test");
  EXPECT_TRUE(made.ok()) << made.error().line();
  return std::move(made).value();
}

TEST(RankedBpe, MergesCharactersByRank) {
  const auto t = ranked(hi_vocab());
  EXPECT_THAT(t->encode("hi", false, false), ElementsAre(3));
  EXPECT_THAT(t->encode("▁hih", false, false), ElementsAre(5, 1));
  EXPECT_THAT(t->encode("", false, false), IsEmpty());
}

TEST(RankedBpe, UnknownCharactersAreOneTokenEachOrTogether) {
  Vocab vocab = hi_vocab();
  EXPECT_THAT(ranked(vocab)->encode("ab\xff hi", false, false), ElementsAre(0, 0, 0, 0, 3));
  vocab.fuse_unknown = true;
  EXPECT_THAT(ranked(vocab)->encode("ab\xff hi", false, false), ElementsAre(0, 0, 0, 3)) << "of a word";
  vocab.unknown = kNoToken;
  EXPECT_THAT(ranked(vocab)->encode("ab\xff hi", false, false), ElementsAre(3)) << "left out";
}

TEST(RankedBpe, TokensThatAreNotOfTheModelAreNeverMerged) {
  Vocab vocab = hi_vocab();
  vocab.whole_words_first = true;
  vocab.merges.clear();
  const auto t = ranked(vocab);
  EXPECT_THAT(t->encode("hi", false, false), ElementsAre(3)) << "the word is a piece";
  EXPECT_THAT(t->encode("<x>", false, false), ElementsAre(0, 0, 0));
  EXPECT_THAT(t->encode("<x>", false, true), ElementsAre(6));
}

TEST(RankedBpe, StepsAreAppliedBeforeAndAfter) {
  Vocab vocab = hi_vocab();
  vocab.cuts = {{.kind = TextStepKind::metaspace, .content = "▁", .prefix = SpacePrefix::first}};
  vocab.decoders = {{.kind = TextStepKind::replace, .pattern = "▁", .content = " "},
                    {.kind = TextStepKind::fuse},
                    {.kind = TextStepKind::strip, .content = " ", .begin = 1}};
  const auto t = ranked(vocab);
  EXPECT_THAT(t->encode("hi<x>hi hi", false, true), ElementsAre(5, 6, 3, 5));
  EXPECT_TRUE(t->drops_first_space());
  EXPECT_EQ(t->decode({5, 6, 3, 5}), "hihi hi");
  EXPECT_EQ(t->decode({5, 6, 3, 5}, true), "hi<x>hi hi");
  EXPECT_EQ(t->piece(5, false), " hi") << "in the middle of a text";
  EXPECT_EQ(t->piece(6, false), "");
  EXPECT_EQ(t->piece(99, true), "");
}

TEST(RankedBpe, TokensBeginATextAfterBos) {
  Vocab vocab = hi_vocab();
  vocab.bos = 6;
  vocab.after_bos = {0, 4};
  EXPECT_THAT(ranked(vocab)->encode("h", true, false), ElementsAre(6, 0, 4, 1));
  vocab.after_bos = {7};
  EXPECT_THAT(make_tokenizer(vocab, "test").error().line(),
              HasSubstr("the beginning token is 7, but there are only 7 tokens"));
}

// An expression that tries every way to divide a word stops, and a line says so.
TEST(RankedBpe, StepsOfAnExpressionAreBounded) {
  Vocab vocab = hi_vocab();
  vocab.cuts = {{.kind = TextStepKind::split, .pattern = "(?:h+h+)+x", .regex = true}};
  const auto t = ranked(vocab);
  testing::internal::CaptureStderr();
  EXPECT_EQ(t->encode(std::string(64, 'h') + "yx", false, false).size(), 66u);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("takes more than 10000000 steps"));
}

TEST(RankedBpe, StepsOfTheWrongGroupAreRefused) {
  Vocab vocab = hi_vocab();
  vocab.normalizers = {{.kind = TextStepKind::fuse}};
  EXPECT_EQ(make_tokenizer(vocab, "test").error().line(), "test: the step fuse is no normalizer");
  vocab = hi_vocab();
  vocab.cuts = {{.kind = TextStepKind::nfc}};
  EXPECT_EQ(make_tokenizer(vocab, "test").error().line(), "test: the step nfc is no pre-tokenizer");
  vocab = hi_vocab();
  vocab.decoders = {{.kind = TextStepKind::split}};
  EXPECT_EQ(make_tokenizer(vocab, "test").error().line(), "test: the step split is no decoder");
}

}  // namespace
}  // namespace tierd
