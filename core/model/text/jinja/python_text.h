// Python's operations on texts, by characters. Bytes that are not UTF-8 are characters of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd::jinja {

size_t characters_in(std::string_view text);
// Return the character at byte `at`, which a character begins, and the last one. The text is not empty.
std::string_view character_at(std::string_view text, size_t at);
std::string_view last_character(std::string_view text);
std::vector<std::string_view> characters_of(std::string_view text);
// Returns the code point of one character; that of a byte that is not UTF-8 is beyond Unicode.
char32_t code_point(std::string_view character);

bool is_space(std::string_view character);

enum class Side : uint8_t { left = 1, right = 2, both = 3 };
// Removes white space, or the characters of `chars`.
std::string_view stripped(std::string_view text, Side side, const std::optional<std::string>& chars = {});

// Split at white space where `separator` is NULL. `most`: cuts; negative: all.
std::vector<std::string_view> split(std::string_view text, const std::string* separator, int64_t most);
std::vector<std::string_view> rsplit(std::string_view text, const std::string* separator, int64_t most);
// Splits at line ends, which the parts do not have unless `keep`.
std::vector<std::string_view> lines_of(std::string_view text, bool keep = false);

// Replaces the first `most` occurrences; all where it is negative. Error: the result is too large.
Result<std::string> replaced(std::string_view text, std::string_view from, std::string_view to, int64_t most);

// Error: a character whose other case glibc and Python do not agree on.
Result<std::string> upper(std::string_view text);
Result<std::string> lower(std::string_view text);
Result<std::string> capitalized(std::string_view text);
// Begins each word with a capital: after a character without case, as str.title().
Result<std::string> titled(std::string_view text);
bool has_case(std::string_view character);

std::string html_escaped(std::string_view text);

}  // namespace tierd::jinja
