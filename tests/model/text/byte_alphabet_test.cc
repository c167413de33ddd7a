#include "core/model/text/byte_alphabet.h"

#include <gtest/gtest.h>

namespace tierd {
namespace {

TEST(ByteAlphabet, GoesBothWays) {
  std::string all;
  std::string piece;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    all.push_back(static_cast<char>(byte));
    piece += byte_character(static_cast<uint8_t>(byte));
  }
  EXPECT_EQ(bytes_of_piece(piece), all);
  EXPECT_EQ(byte_character(' '), "Ġ");
  EXPECT_EQ(byte_character('\n'), "Ċ");
  EXPECT_EQ(byte_character(0xad), "Ń");
  EXPECT_EQ(bytes_of_piece("<｜begin▁of▁sentence｜>"), "<｜begin▁of▁sentence｜>") << "not in the alphabet";
}

}  // namespace
}  // namespace tierd
