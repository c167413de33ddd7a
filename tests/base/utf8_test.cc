#include "core/base/utf8.h"

#include <gtest/gtest.h>

namespace tierd {
namespace {

TEST(Utf8, MeasuresWellFormedCharacters) {
  EXPECT_EQ(utf8_character_bytes("a", 0), 1u);
  EXPECT_EQ(utf8_character_bytes(std::string_view("\0", 1), 0), 1u);
  EXPECT_EQ(utf8_character_bytes("é", 0), 2u);
  EXPECT_EQ(utf8_character_bytes("▁", 0), 3u);
  EXPECT_EQ(utf8_character_bytes("x🚢", 1), 4u);
  EXPECT_EQ(utf8_character_bytes("\xed\x9f\xbf", 0), 3u);      // U+D7FF
  EXPECT_EQ(utf8_character_bytes("\xf4\x8f\xbf\xbf", 0), 4u);  // U+10FFFF
}

TEST(Utf8, RefusesWhatIsNot) {
  for (const char* bad :
       {"\x80", "\xc3", "\xc3(", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xe2\x96", "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_EQ(utf8_character_bytes(bad, 0), 0u) << bad;
  }
}

TEST(Utf8, AppendsEveryCodePoint) {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string out;
    append_utf8(out, c);
    ASSERT_EQ(utf8_character_bytes(out, 0), out.size()) << static_cast<uint32_t>(c);
  }
}

}  // namespace
}  // namespace tierd
