// GPT-2's byte alphabet: each of the 256 bytes is written as one printable character, so that the pieces of a
// byte-level vocabulary are plain text. 'a' remains 'a', the space is "Ġ", the newline "Ċ".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tierd {

// Returns the character for `byte`, in UTF-8.
const std::string& byte_character(uint8_t byte);

// Returns the bytes of a piece; the piece itself if it has any character outside the alphabet.
std::string bytes_of_piece(std::string_view piece);

}  // namespace tierd
