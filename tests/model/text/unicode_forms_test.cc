#include "core/model/text/unicode_forms.h"

#include <gtest/gtest.h>

#include "core/base/utf8.h"

namespace tierd {
namespace {

std::string repeated(std::string_view part, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += part;
  return out;
}

TEST(UnicodeForms, ComposeAndDecompose) {
  EXPECT_EQ(to_form("e\u0301 ab", UnicodeForm::nfc), "\u00e9 ab");
  EXPECT_EQ(to_form("\u00e9", UnicodeForm::nfd), "e\u0301");
  EXPECT_EQ(to_form("\ufb01\uff21\u00bd\u00a0", UnicodeForm::nfkc), "fiA1\u20442 ");
  EXPECT_EQ(to_form("\uac01", UnicodeForm::nfkd), "\u1100\u1161\u11a8");
  EXPECT_EQ(to_form("\u1100\u1161\u11a8", UnicodeForm::nfc), "\uac01");
  EXPECT_EQ(to_form("\u212b\uf900", UnicodeForm::nfc), "\u00c5\u8c48");
  EXPECT_EQ(to_form("", UnicodeForm::nfc), "");
}

TEST(UnicodeForms, OnlyTheCharacterBeforeAMarkChanges) {
  EXPECT_EQ(to_form("xe\u0301y", UnicodeForm::nfc), "x\u00e9y");
  EXPECT_EQ(to_form("\u00ea\u0301", UnicodeForm::nfc), "\u1ebf") << "two bytes before the mark";
  EXPECT_EQ(to_form("\u0301a\u4e00e\u0301", UnicodeForm::nfc), "\u0301a\u4e00\u00e9");
  EXPECT_EQ(to_form("a\u0323\u0307", UnicodeForm::nfc), to_form("a\u0307\u0323", UnicodeForm::nfc));
}

// Marks are ordered in O(n log n): utf8proc alone would exchange 10^10 neighbours here.
TEST(UnicodeForms, LongRunsOfMarks) {
  const std::string text = "a" + repeated("\u0301", 100'000) + repeated("\u0323", 100'000);
  const std::string want = "\u1ea1" + repeated("\u0323", 99'999) + repeated("\u0301", 100'000);
  EXPECT_EQ(to_form(text, UnicodeForm::nfc), want);
}

TEST(UnicodeForms, CaseAndMarks) {
  EXPECT_EQ(to_lower("AbÉΣß\u0130"), "abéσßi\u0307");
  EXPECT_EQ(without_marks("e\u0301\u093e\u20ddx"), "ex");
}

}  // namespace
}  // namespace tierd
