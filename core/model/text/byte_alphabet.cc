#include "core/model/text/byte_alphabet.h"

#include <array>

#include "core/base/utf8.h"

namespace tierd {
namespace {

// Bytes that are printable in Latin-1 keep their code point; the other 68 have U+0100 to U+0143 in order.
constexpr bool keeps_code_point(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}
constexpr char32_t kFirstMoved = 0x100;
constexpr size_t kMoved = 68;

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<char, kMoved> moved;

  Alphabet() {
    size_t next = 0;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (keeps_code_point(byte)) {
        append_utf8(characters[byte], byte);
      } else {
        append_utf8(characters[byte], static_cast<char32_t>(kFirstMoved + next));
        moved[next++] = static_cast<char>(byte);
      }
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet table;
  return table;
}

}  // namespace

const std::string& byte_character(uint8_t byte) {
  return alphabet().characters[byte];
}

std::string bytes_of_piece(std::string_view piece) {
  std::string bytes;
  for (size_t at = 0; at < piece.size();) {
    const size_t length = utf8_character_bytes(piece, at);
    const auto lead = static_cast<uint8_t>(piece[at]);
    if (length == 1 && keeps_code_point(lead)) {
      bytes.push_back(piece[at]);
    } else if (length == 2) {
      const uint32_t code_point = (lead & 0x1fu) << 6 | (static_cast<uint8_t>(piece[at + 1]) & 0x3fu);
      if (code_point < 0x100 && keeps_code_point(code_point)) {
        bytes.push_back(static_cast<char>(code_point));
      } else if (code_point >= kFirstMoved && code_point < kFirstMoved + kMoved) {
        bytes.push_back(alphabet().moved[code_point - kFirstMoved]);
      } else {
        return std::string(piece);
      }
    } else {
      return std::string(piece);
    }
    at += length;
  }
  return bytes;
}

}  // namespace tierd
