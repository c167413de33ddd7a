// Iterates over the characters of text that may not be valid UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tierd {

// Returns the bytes of the well-formed character that starts at `at` (1 to 4), or 0 if there is none: stray
// or missing continuation bytes, overlong forms, surrogates, beyond U+10FFFF. Needs at < text.size().
size_t utf8_character_bytes(std::string_view text, size_t at);

// Returns a piece as printable text on one line, cut after about `max_bytes`.
std::string shown(std::string_view text, size_t max_bytes = 60);

// Appends the character in UTF-8. Needs code_point <= 0x10ffff.
void append_utf8(std::string& out, char32_t code_point);

}  // namespace tierd
