#include "core/model/text/jinja/python_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <cwctype>
#include <iterator>

#include "core/base/check.h"
#include "core/base/utf8.h"
#include "core/model/text/jinja/value.h"

namespace tierd::jinja {
namespace {

constexpr char32_t kNoCharacter = 0x110000;

struct Range {
  char32_t first, last;
};

template <size_t n>
bool is_in(const std::array<Range, n>& ranges, char32_t c) {
  return std::ranges::any_of(ranges, [c](const Range& range) { return range.first <= c && c <= range.last; });
}

// Characters that Python writes as escapes although glibc prints them.
constexpr std::array kNotPrinted = std::to_array<Range>(
    {{0xa0, 0xa0},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},
     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x1680, 0x1680},   {0x180e, 0x180e},
     {0x2000, 0x200f},   {0x202a, 0x202f},   {0x205f, 0x2064},   {0x2066, 0x206f},   {0x3000, 0x3000},
     {0xe000, 0xf8ff},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
     {0x13430, 0x13438}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe007f}, {0xf0000, 0x10ffff}});

// Characters with a capital of several characters, or one that depends on the text around it.
constexpr std::array kOddCase = std::to_array<Range>({{0xdf, 0xdf},
                                                      {0x130, 0x130},
                                                      {0x149, 0x149},
                                                      {0x1f0, 0x1f0},
                                                      {0x390, 0x390},
                                                      {0x3a3, 0x3a3},
                                                      {0x3b0, 0x3b0},
                                                      {0x587, 0x587},
                                                      {0x1c4, 0x1cc},
                                                      {0x1f1, 0x1f3},
                                                      {0x1e96, 0x1e9a},
                                                      {0x1f50, 0x1f57},
                                                      {0x1f80, 0x1ffc},
                                                      {0xfb00, 0xfb17}});

locale_t unicode() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  TIERD_CHECK_MSG(locale != nullptr, "the C library has no locale C.UTF-8");
  return locale;
}

using Convert = wint_t (*)(wint_t, locale_t);

Status append_converted(std::string& out, std::string_view character, Convert convert) {
  const char32_t c = code_point(character);
  if (is_in(kOddCase, c)) return wrong(fmt::format("the other case of '{}' is not supported", character));
  if (c == kNoCharacter) {
    out += character;
  } else {
    append_utf8(out, static_cast<char32_t>(convert(static_cast<wint_t>(c), unicode())));
  }
  return {};
}

Result<std::string> converted(std::string_view text, Convert convert) {
  std::string out;
  for (size_t at = 0; at < text.size(); at += character_at(text, at).size())
    TIERD_TRY(append_converted(out, character_at(text, at), convert));
  return out;
}

// Returns the byte at which a split at white space finds the next word, and the word's end.
std::pair<size_t, size_t> next_word(const std::vector<std::string_view>& characters, size_t from) {
  while (from < characters.size() && is_space(characters[from])) ++from;
  size_t end = from;
  while (end < characters.size() && !is_space(characters[end])) ++end;
  return {from, end};
}

// Returns the text from the first to the last of the characters.
std::string_view joined(const std::vector<std::string_view>& characters, size_t begin, size_t end) {
  if (begin >= end) return {};
  const char* const first = characters[begin].data();
  return {first, static_cast<size_t>(characters[end - 1].data() + characters[end - 1].size() - first)};
}

std::vector<std::string_view> words_from_right(std::string_view text, int64_t most) {
  const std::vector<std::string_view> characters = characters_of(text);
  std::vector<std::string_view> parts;
  size_t end = characters.size();
  for (;;) {
    while (end != 0 && is_space(characters[end - 1])) --end;
    if (end == 0) break;
    size_t begin = most == 0 ? 0 : end;
    while (begin != 0 && !is_space(characters[begin - 1])) --begin;
    parts.push_back(joined(characters, begin, end));
    if (most-- == 0) break;
    end = begin;
  }
  std::ranges::reverse(parts);
  return parts;
}

}  // namespace

std::string_view character_at(std::string_view text, size_t at) {
  return text.substr(at, std::max<size_t>(utf8_character_bytes(text, at), 1));
}

std::string_view last_character(std::string_view text) {
  for (size_t bytes = 1; bytes <= std::min<size_t>(text.size(), 4); ++bytes) {
    const size_t at = text.size() - bytes;
    if (utf8_character_bytes(text, at) == bytes) return text.substr(at);
  }
  return text.substr(text.size() - 1);
}

size_t characters_in(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) at += character_at(text, at).size();
  return count;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  for (size_t at = 0; at < text.size(); at += characters.back().size())
    characters.push_back(character_at(text, at));
  return characters;
}

char32_t code_point(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x80 ? byte(0) : kNoCharacter;
  char32_t c = byte(0) & (0x7f >> character.size());
  for (size_t i = 1; i < character.size(); ++i) c = c << 6 | (byte(i) & 0x3f);
  return c;
}

bool is_space(std::string_view character) {
  const char32_t c = code_point(character);
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

std::string_view stripped(std::string_view text, Side side, const std::optional<std::string>& chars) {
  const std::vector<std::string_view> set = chars ? characters_of(*chars) : std::vector<std::string_view>();
  const auto goes = [&](std::string_view one) {
    return chars ? std::ranges::find(set, one) != set.end() : is_space(one);
  };
  while (side != Side::right && !text.empty() && goes(character_at(text, 0)))
    text.remove_prefix(character_at(text, 0).size());
  while (side != Side::left && !text.empty() && goes(last_character(text)))
    text.remove_suffix(last_character(text).size());
  return text;
}

std::vector<std::string_view> split(std::string_view text, const std::string* separator, int64_t most) {
  std::vector<std::string_view> parts;
  if (separator == nullptr) {
    const std::vector<std::string_view> all = characters_of(text);
    for (size_t at = 0;;) {
      const auto [begin, end] = next_word(all, at);
      if (begin == end) return parts;
      if (most-- == 0) {
        parts.push_back(stripped(joined(all, begin, all.size()), Side::right));
        return parts;
      }
      parts.push_back(joined(all, begin, end));
      at = end;
    }
  }
  size_t begin = 0;
  for (size_t at; most-- != 0 && (at = text.find(*separator, begin)) != std::string_view::npos;) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + separator->size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<std::string_view> rsplit(std::string_view text, const std::string* separator, int64_t most) {
  if (separator == nullptr) return words_from_right(text, most);
  std::vector<std::string_view> parts;
  size_t end = text.size();
  while (most-- != 0) {
    const size_t at =
        end < separator->size() ? std::string_view::npos : text.rfind(*separator, end - separator->size());
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(at + separator->size(), end - at - separator->size()));
    end = at;
  }
  parts.push_back(text.substr(0, end));
  std::ranges::reverse(parts);
  return parts;
}

std::vector<std::string_view> lines_of(std::string_view text, bool keep) {
  std::vector<std::string_view> lines;
  const std::vector<std::string_view> all = characters_of(text);
  size_t begin = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const char32_t c = code_point(all[i]);
    const bool ends =
        (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!ends) continue;
    const size_t end = c == '\r' && i + 1 < all.size() && all[i + 1] == "\n" ? i + 2 : i + 1;
    lines.push_back(joined(all, begin, keep ? end : i));
    begin = end;
    i = end - 1;
  }
  if (begin < all.size()) lines.push_back(joined(all, begin, all.size()));
  return lines;
}

Result<std::string> replaced(std::string_view text, std::string_view from, std::string_view to,
                             int64_t most) {
  std::string out;
  size_t done = 0;
  for (size_t at = 0; most != 0; --most) {
    at = text.find(from, at);
    if (at == std::string_view::npos) break;
    out.append(text.substr(done, at - done)).append(to);
    if (out.size() > kLargestValue) return wrong("a text is larger than 32 MiB");
    done = at + from.size();
    if (done == text.size() && from.empty()) return out;
    at = from.empty() ? at + character_at(text, at).size() : done;
  }
  return out.append(text.substr(done));
}

Result<std::string> upper(std::string_view text) {
  return converted(text, towupper_l);
}

Result<std::string> lower(std::string_view text) {
  return converted(text, towlower_l);
}

Result<std::string> capitalized(std::string_view text) {
  const size_t first = text.empty() ? 0 : character_at(text, 0).size();
  TIERD_ASSIGN(std::string out, upper(text.substr(0, first)));
  TIERD_ASSIGN(const std::string rest, lower(text.substr(first)));
  return out + rest;
}

bool has_case(std::string_view character) {
  const auto c = static_cast<wint_t>(code_point(character));
  return c < kNoCharacter && (towupper_l(c, unicode()) != c || towlower_l(c, unicode()) != c);
}

Result<std::string> titled(std::string_view text) {
  std::string out;
  bool in_word = false;
  for (size_t at = 0; at < text.size(); at += character_at(text, at).size()) {
    const std::string_view one = character_at(text, at);
    TIERD_TRY(append_converted(out, one, in_word ? towlower_l : towupper_l));
    in_word = has_case(one);
  }
  return out;
}

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string repr_of_text(std::string_view text) {
  const char quote =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size(); at += character_at(text, at).size()) {
    const std::string_view one = character_at(text, at);
    const char32_t c = code_point(one);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\', out += one;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (c == kNoCharacter) {
      out += fmt::format("\\udc{:02x}", static_cast<unsigned char>(one[0]));
    } else if (!iswprint_l(static_cast<wint_t>(c), unicode()) || is_in(kNotPrinted, c)) {
      out += c < 0x100     ? fmt::format("\\x{:02x}", static_cast<uint32_t>(c))
             : c < 0x10000 ? fmt::format("\\u{:04x}", static_cast<uint32_t>(c))
                           : fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    } else {
      out += one;
    }
  }
  return out + quote;
}

}  // namespace tierd::jinja
