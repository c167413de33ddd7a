// GPT-2's byte alphabet: each of the 256 bytes is written as one printable character, so that the pieces of a
// byte-level vocabulary are plain text. 'a' stays 'a', the space is "Ġ", the newline "Ċ".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tierd {

// The character that stands for `byte`, in UTF-8.
const std::string& byte_character(uint8_t byte);

// The bytes that a piece stands for. A piece with any character outside the alphabet stands for itself.
std::string bytes_of_piece(std::string_view piece);

}  // namespace tierd
