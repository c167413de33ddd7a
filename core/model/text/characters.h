// Classifies characters as white space or word characters, as Unicode and Rust's regular expressions do.
#pragma once

#include <cstddef>
#include <string_view>

namespace tierd {

// Return the bytes of white space at the beginning or the end of a text.
size_t space_bytes_at_begin(std::string_view text);
size_t space_bytes_at_end(std::string_view text);

// Return whether the first or last character is a letter, a mark, a digit or a connector such as "_".
bool begins_with_word(std::string_view text);
bool ends_with_word(std::string_view text);

}  // namespace tierd
