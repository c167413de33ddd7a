#include "core/model/text/text_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"

namespace tierd {
namespace {

using testing::ElementsAre;

std::vector<std::string> shown(TextStream stream, const std::vector<std::string>& pieces) {
  std::vector<std::string> out;
  for (const std::string& piece : pieces) out.push_back(stream.add(piece));
  out.push_back(stream.finish());
  return out;
}

TEST(TextStream, ShowsACharacterWhenItIsWhole) {
  EXPECT_THAT(shown(TextStream(), {"a\xE2", "\x82", "\xAC", "b"}), ElementsAre("a", "", "€", "b", ""));
  EXPECT_THAT(shown(TextStream(), {"\xF0\x9F", "\x98\x80"}), ElementsAre("", "😀", ""));
}

TEST(TextStream, ReplacesWhatCanBecomeNone) {
  EXPECT_THAT(shown(TextStream(), {"\x80", "\xFFz"}), ElementsAre("�", "�z", ""));
  EXPECT_THAT(shown(TextStream(), {"\xE0\x80", "x"}), ElementsAre("��", "x", ""));  // overlong
  EXPECT_THAT(shown(TextStream(), {"\xED\xA0", "x"}), ElementsAre("��", "x", ""));  // a surrogate
  EXPECT_THAT(shown(TextStream(), {"\xF4\x90", "x"}), ElementsAre("��", "x", ""));
  EXPECT_THAT(shown(TextStream(), {"\xE2\x82", "x"}), ElementsAre("", "��x", ""));
  EXPECT_THAT(shown(TextStream(), {"a\xE2\x82"}), ElementsAre("a", "��"));
}

TEST(TextStream, EndsBeforeAStopString) {
  TextStream stream({"User:", "\n\n"});
  EXPECT_EQ(stream.add("Hello\n"), "Hello");
  EXPECT_EQ(stream.add("Us"), "\n");
  EXPECT_EQ(stream.add("ers Use"), "Users ");
  EXPECT_EQ(stream.add("r: x"), "");
  EXPECT_EQ(stream.stop(), "User:");
  EXPECT_EQ(stream.add("more"), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, TheFirstStopInTheTextCounts) {
  TextStream stream({"cd", "b"});
  EXPECT_EQ(stream.add("abcd"), "a");
  EXPECT_EQ(stream.stop(), "b");
}

TEST(TextStream, WhatOnlyBeganLikeAStopIsShownInTheEnd) {
  EXPECT_THAT(shown(TextStream({"aab"}), {"a", "a", "a", "c", "aa"}),
              ElementsAre("", "", "a", "aac", "", "aa"));
  EXPECT_THAT(shown(TextStream({""}), {"a"}), ElementsAre("a", ""));
}

TEST(TextStream, AStopMayNameHiddenTokens) {
  TextStream alone({"<|eot|>"});
  EXPECT_EQ(alone.add("a"), "a");
  EXPECT_EQ(alone.add_hidden("<|sep|>"), "");
  EXPECT_EQ(alone.add_hidden("<|eot|>"), "");
  EXPECT_EQ(alone.stop(), "<|eot|>");
  EXPECT_EQ(alone.finish(), "");

  TextStream spanning({"never", "b<|eot|>\n"});
  EXPECT_EQ(spanning.add("ab"), "a");
  EXPECT_EQ(spanning.add_hidden("<|eot|>"), "");
  EXPECT_EQ(spanning.add("b"), "b") << "what began there is none; this may begin one";
  EXPECT_EQ(spanning.add_hidden("<|eot|>"), "");
  EXPECT_EQ(spanning.add("\nmore"), "");
  EXPECT_EQ(spanning.stop(), "b<|eot|>\n");

  // The token's text, written by ordinary tokens, is text.
  TextStream written({"<|eot|>"});
  EXPECT_EQ(written.add("a<|e"), "a");
  EXPECT_EQ(written.add("ot|>"), "");
  EXPECT_EQ(written.stop(), "<|eot|>");
}

// The shown text contains no stop string, even with hidden tokens between its parts.
TEST(TextStream, AStopIsFoundAcrossHiddenTokens) {
  TextStream stream({"END"});
  EXPECT_EQ(stream.add("xE"), "x");
  EXPECT_EQ(stream.add_hidden("<|sep|>"), "");
  EXPECT_EQ(stream.add("ND"), "");
  EXPECT_EQ(stream.stop(), "END");
  TextStream character;
  EXPECT_EQ(character.add("\xE2\x82"), "");
  EXPECT_EQ(character.add_hidden("<|sep|>"), "");
  EXPECT_EQ(character.add("\xAC"), "€");
}

// The text shown does not depend on how it is cut into pieces.
TEST(TextStream, PiecesDoNotMatter) {
  Random random(1);
  const std::vector<std::string> parts = {"a", "ab", "€",   "\xF0\x9F\x98\x80", "\xE2", "\x82", "END",
                                          "E", "N",  "\xFF"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    const uint32_t n = random.below(12);
    for (uint32_t i = 0; i < n; ++i) text += parts[random.below(static_cast<uint32_t>(parts.size()))];
    TextStream whole({"END", "bE"});
    std::string expected = whole.add(text);
    expected += whole.finish();
    TextStream bytewise({"END", "bE"});
    TextStream beside_hidden({"END", "bE"});
    std::string got;
    std::string got_beside;
    for (const char byte : text) {
      got += bytewise.add({&byte, 1});
      if (random.below(4) == 0) got_beside += beside_hidden.add_hidden("<|sep|>");
      got_beside += beside_hidden.add({&byte, 1});
    }
    got += bytewise.finish();
    got_beside += beside_hidden.finish();
    EXPECT_EQ(got, expected);
    EXPECT_EQ(bytewise.stop(), whole.stop());
    EXPECT_EQ(got_beside, expected);
  }
}

}  // namespace
}  // namespace tierd
