#include "core/model/text/oniguruma.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/utf8.h"

namespace tierd {
namespace {

// The members of Oniguruma's \s and \w. PCRE2's \s also has U+180E, and its \w lacks marks.
constexpr std::string_view kSpaceMembers = R"(\p{WSpace})";
constexpr std::string_view kWordMembers = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

// The properties with the same members in both libraries. Any other name is taken for a script's, which
// PCRE2 would extend by the characters that several scripts use.
constexpr std::array<std::string_view, 39> kProperties = {
    "L",  "Ll", "Lu", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",   "Nd",         "Nl",
    "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm",  "Sc",         "Sk",
    "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Co", "Cs", "Any", "Alphabetic", "White_Space"};

bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

class Translation {
 public:
  Translation(std::string_view pattern, std::string_view origin) : pattern_(pattern), origin_(origin) {}

  Result<std::string> run() {
    if (rest().starts_with("(?i)")) copy(4);
    while (at_ < pattern_.size()) TIERD_TRY(one_outside());
    return std::move(out_);
  }

 private:
  std::string_view rest() const { return pattern_.substr(at_); }
  char peek(size_t ahead = 0) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }
  void copy(size_t bytes) {
    out_ += pattern_.substr(at_, bytes);
    at_ += bytes;
  }
  void put(std::string_view text, size_t bytes) {
    out_ += text;
    at_ += bytes;
  }
  Error refuse(std::string_view part) const {
    return Error{Code::unsupported, std::string(origin_),
                 fmt::format("the expression \"{}\" has {} at offset {}, which is not supported",
                             shown(pattern_), part, at_)};
  }

  Status one_outside() {
    switch (peek()) {
      case '\\':
        return escape(false);
      case '[':
        return bracket(0);
      case '(':
        return group();
      case '{':
        return repetition();
      default:
        copy(1);
        return {};
    }
  }

  Status group() {
    static constexpr std::array<std::string_view, 8> kGroups = {"(?:",  "(?=",  "(?!",  "(?>",
                                                                "(?<=", "(?<!", "(?i:", "(?-i:"};
    if (peek(1) != '?') {
      copy(1);
      return {};
    }
    for (const std::string_view begin : kGroups) {
      if (!rest().starts_with(begin)) continue;
      copy(begin.size());
      return {};
    }
    return refuse("a group \"" + std::string(shown(rest().substr(0, 4))) + "\"");
  }

  // In Oniguruma {n}? and {n}+ repeat the repetition, and {,n} begins at 0.
  Status repetition() {
    const size_t end = rest().find('}');
    const std::string_view inside =
        end == std::string_view::npos ? std::string_view() : rest().substr(1, end - 1);
    const bool counts = !inside.empty() && is_ascii_digit(inside.front()) &&
                        std::ranges::all_of(inside, [](char c) { return is_ascii_digit(c) || c == ','; });
    if (!counts) return refuse("a brace that is no repetition");
    if (peek(end + 1) == '+' || (peek(end + 1) == '?' && inside.find(',') == std::string_view::npos))
      return refuse("a repetition of a repetition");
    copy(end + 1);
    return {};
  }

  // Translates a class; a class without "^" inside it only adds members.
  Status bracket(int depth) {
    const bool inner = depth > 0;
    if (rest().starts_with("[:") || (inner && peek(1) == '^') || depth > 4)
      return refuse("a class inside a class");
    at_ += 1;
    if (!inner) out_ += '[';
    if (!inner && peek() == '^') copy(1);
    if (peek() == ']') return refuse("an empty class");
    while (peek() != ']') {
      if (at_ >= pattern_.size()) return refuse("a class without an end");
      if (rest().starts_with("&&")) return refuse("an intersection of classes");
      if (peek() == '[') {
        TIERD_TRY(bracket(depth + 1));
      } else if (peek() == '\\') {
        TIERD_TRY(escape(true));
      } else {
        copy(1);
      }
    }
    at_ += 1;
    if (!inner) out_ += ']';
    return {};
  }

  Status escape(bool in_class) {
    const char c = peek(1);
    switch (c) {
      case 's':
        put(kSpaceMembers, 2);
        return {};
      case 'S':
        put(R"(\P{WSpace})", 2);
        return {};
      case 'w':
        put(in_class ? std::string(kWordMembers) : fmt::format("[{}]", kWordMembers), 2);
        return {};
      case 'W':
        if (in_class) break;
        put(fmt::format("[^{}]", kWordMembers), 2);
        return {};
      case 'b':
        if (in_class) break;
        put(fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kWordMembers), 2);
        return {};
      case 'v':
        put(R"(\x{b})", 2);
        return {};
      case 'd':
      case 'D':
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
        copy(2);
        return {};
      case 'A':
      case 'z':
        if (in_class) break;
        copy(2);
        return {};
      case 'x':
        return hex();
      case 'u':
        return four_digits();
      case 'p':
      case 'P':
        return property();
      default:
        if (c == '\0' || is_ascii_letter(c) || is_ascii_digit(c) || static_cast<uint8_t>(c) >= 0x80) break;
        copy(2);
        return {};
    }
    return refuse(fmt::format("\"{}\"", shown(rest().substr(0, 2))));
  }

  static bool is_hex(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  }

  // \x{H…}, or \xHH for one of ASCII.
  Status hex() {
    if (peek(2) == '{') {
      const size_t end = rest().find('}');
      if (end == std::string_view::npos || end > 9 || !is_hex(rest().substr(3, end - 3)))
        return refuse("a character without its number");
      copy(end + 1);
      return {};
    }
    if (!is_hex(rest().substr(2, 2)) || rest().size() < 4 || peek(2) >= '8')
      return refuse("a byte that is no character");
    copy(4);
    return {};
  }

  Status four_digits() {
    const std::string_view digits = rest().substr(2, 4);
    if (digits.size() != 4 || !is_hex(digits)) return refuse("a character without its number");
    put(fmt::format("\\x{{{}}}", digits), 6);
    return {};
  }

  Status property() {
    const size_t end = rest().find('}');
    if (peek(2) != '{' || end == std::string_view::npos) return refuse("a property without its name");
    std::string_view name = rest().substr(3, end - 3);
    const bool inverted = name.starts_with('^');
    if (inverted) name.remove_prefix(1);
    if (name.empty() || !std::ranges::all_of(name, [](char c) { return is_ascii_letter(c) || c == '_'; }))
      return refuse("a property without its name");
    const bool same = std::ranges::find(kProperties, name) != kProperties.end();
    put(fmt::format("\\{}{{{}{}{}}}", peek(1), inverted ? "^" : "", same ? "" : "sc:", name), end + 1);
    return {};
  }

  std::string_view pattern_;
  std::string_view origin_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> pcre_of_oniguruma(std::string_view pattern, std::string_view origin) {
  return Translation(pattern, origin).run();
}

}  // namespace tierd
