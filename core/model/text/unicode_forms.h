// Unicode's normalization forms and case mapping, by utf8proc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tierd {

enum class UnicodeForm : uint8_t { nfc, nfd, nfkc, nfkd };

// All of them need well-formed UTF-8.
std::string to_form(std::string_view text, UnicodeForm form);
// Maps each character to lower case by itself: a final sigma is not different.
std::string to_lower(std::string_view text);
// Removes the characters that are marks (general category M).
std::string without_marks(std::string_view text);

}  // namespace tierd
