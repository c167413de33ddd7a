// Which characters are white space, and which are of words, as Unicode has it and Rust's regular expressions
// do.
#pragma once

#include <cstddef>
#include <string_view>

namespace tierd {

// Bytes of the white space that a text begins or ends with.
size_t space_bytes_at_begin(std::string_view text);
size_t space_bytes_at_end(std::string_view text);

// Whether the first or the last character is of a word: a letter, a mark, a digit, a connector such as "_".
bool begins_with_word(std::string_view text);
bool ends_with_word(std::string_view text);

}  // namespace tierd
