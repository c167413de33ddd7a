#include "core/model/text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/utf8.h"
#include "core/model/text/jinja/python_text.h"
#include "core/model/text/jinja/value.h"

namespace tierd::jinja {
namespace {

constexpr size_t kNowhere = std::string_view::npos;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Every line end becomes a line feed, and the last one goes.
std::string normalized(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') ++i;
    out += source[i] == '\r' ? '\n' : source[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> read() {
    while (at_ < source_.size()) {
      const size_t begin = next_tag();
      const std::string_view before = source_.substr(at_, std::min(begin, source_.size()) - at_);
      if (begin == kNowhere) {
        add_text(before);
        move_to(source_.size());
      } else {
        TIERD_TRY(read_tag(before, begin));
      }
    }
    add(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  Error bad(std::string detail) const {
    return {Code::invalid_argument, fmt::format("line {}", line_), std::move(detail)};
  }
  void add(Token::Kind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }
  // Counts the lines up to `at` and continues there.
  void move_to(size_t at) {
    line_ += static_cast<uint32_t>(
        std::count(source_.begin() + counted_, source_.begin() + static_cast<ptrdiff_t>(at), '\n'));
    counted_ = static_cast<ptrdiff_t>(at);
    at_ = at;
  }
  void add_text(std::string_view text) {
    if (!text.empty()) add(Token::Kind::text, std::string(text));
  }

  size_t next_tag() const {
    for (size_t at = source_.find('{', at_); at != kNowhere && at + 1 < source_.size();
         at = source_.find('{', at + 1)) {
      if (source_[at + 1] == '{' || source_[at + 1] == '%' || source_[at + 1] == '#') return at;
    }
    return kNowhere;
  }

  size_t after_space(size_t at) const {
    while (at < source_.size()) {
      const size_t bytes = std::max<size_t>(utf8_character_bytes(source_, at), 1);
      if (!is_space(source_.substr(at, bytes))) break;
      at += bytes;
    }
    return at;
  }

  // Returns the text before a tag with `sign`, without the white space that the tag removes.
  std::string_view trimmed(std::string_view text, char sign, bool output) const {
    if (sign == '-') return stripped(text, Side::right);
    if (sign == '+' || output) return text;
    const size_t line_begin = text.rfind('\n') + 1;  // 0 where there is no line feed
    const bool begins_line = line_begin > 0 || at_ == 0 || source_[at_ - 1] == '\n';
    const bool blank = line_begin < text.size() && stripped(text.substr(line_begin), Side::left).empty();
    return begins_line && blank ? text.substr(0, line_begin) : text;
  }

  // Returns the position behind the end of a tag whose closing mark is at `at`, which may have a sign before
  // it: white space behind "-", and one line feed behind the end of a block, go.
  size_t behind(size_t at, char sign, bool output) const {
    const size_t end = at + 2;
    if (sign == '-') return after_space(end);
    return sign != '+' && !output && end < source_.size() && source_[end] == '\n' ? end + 1 : end;
  }

  char sign_at(size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : ' ';
  }

  Status read_tag(std::string_view before, size_t begin) {
    const char kind = source_[begin + 1];
    const char sign = sign_at(begin + 2);
    add_text(trimmed(before, sign, kind == '{'));
    move_to(begin);
    const size_t inside = begin + (sign == ' ' ? 2 : 3);
    if (kind == '#') return skip_comment(inside);
    if (kind == '%') {
      if (const auto raw = end_of_raw(inside)) return read_raw(*raw);
    }
    add(kind == '{' ? Token::Kind::output_begin : Token::Kind::tag_begin, "");
    move_to(inside);
    return read_inside(kind == '{');
  }

  Status skip_comment(size_t inside) {
    const size_t end = source_.find("#}", inside);
    if (end == kNowhere) return bad("a comment has no end, expected #}");
    move_to(behind(end, end > inside ? sign_at(end - 1) : ' ', false));
    return {};
  }

  // Returns the position behind the tag if it is {% raw %}.
  std::optional<size_t> end_of_raw(size_t inside) const {
    size_t at = after_space(inside);
    if (source_.substr(at, 3) != "raw") return {};
    at = after_space(at + 3);
    const bool strips = source_.substr(at, 3) == "-%}";
    if (!strips && source_.substr(at, 2) != "%}") return {};
    return strips ? after_space(at + 3) : at + 2;
  }

  Status read_raw(size_t begin) {
    move_to(begin);
    for (size_t tag = source_.find("{%", begin); tag != kNowhere; tag = source_.find("{%", tag + 1)) {
      const char sign = sign_at(tag + 2);
      size_t at = after_space(tag + (sign == ' ' ? 2 : 3));
      if (source_.substr(at, 6) != "endraw") continue;
      at = after_space(at + 6);
      const char last = sign_at(at);
      if (source_.substr(at + (last == ' ' ? 0 : 1), 2) != "%}") continue;
      add_text(trimmed(source_.substr(begin, tag - begin), sign, false));
      move_to(behind(at + (last == ' ' ? 0 : 1), last, false));
      return {};
    }
    return bad("{% raw %} has no end, expected {% endraw %}");
  }

  // Reads the tokens up to the end of the tag. A closing mark inside brackets is not its end.
  Status read_inside(bool output) {
    const std::string_view mark = output ? "}}" : "%}";
    std::string open;
    for (;;) {
      move_to(after_space(at_));
      if (at_ == source_.size()) return bad(fmt::format("the tag has no end, expected {}", mark));
      const char sign = sign_at(at_);
      const size_t end = at_ + (sign == ' ' || (output && sign == '+') ? 0 : 1);
      if (open.empty() && source_.substr(end, 2) == mark) {
        add(output ? Token::Kind::output_end : Token::Kind::tag_end, "");
        move_to(behind(end, end == at_ ? ' ' : sign, output));
        return {};
      }
      TIERD_TRY(read_token(open));
    }
  }

  Status read_token(std::string& open) {
    const char c = source_[at_];
    if (is_digit(c)) return read_number();
    if (c == '"' || c == '\'') return read_string();
    if (begins_name(c)) {
      size_t end = at_;
      while (end < source_.size() && (begins_name(source_[end]) || is_digit(source_[end]))) ++end;
      add(Token::Kind::name, std::string(source_.substr(at_, end - at_)));
      at_ = end;
      return {};
    }
    for (const std::string_view symbol : {"//", "**", "==", "!=", ">=", "<="}) {
      if (source_.substr(at_, 2) == symbol) return add_symbol(symbol);
    }
    const std::string_view symbol = source_.substr(at_, 1);
    if (std::string_view("+-/*%~[](){}><=.:|,").find(c) == kNowhere)
      return bad(fmt::format("found '{}', expected an expression", shown(symbol)));
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c)
        return bad(open.empty() ? fmt::format("found '{}', which closes nothing", c)
                                : fmt::format("found '{}', expected '{}'", c, open.back()));
      open.pop_back();
    }
    return add_symbol(symbol);
  }

  Status add_symbol(std::string_view symbol) {
    add(Token::Kind::symbol, std::string(symbol));
    at_ += symbol.size();
    return {};
  }

  // Appends digits, between which "_" may stand.
  void take_digits(std::string& number) {
    while (at_ < source_.size() &&
           (is_digit(source_[at_]) || (source_[at_] == '_' && is_digit_at(at_ + 1)))) {
      if (source_[at_] != '_') number += source_[at_];
      ++at_;
    }
  }
  bool is_digit_at(size_t at) const { return at < source_.size() && is_digit(source_[at]); }

  Status read_number() {
    std::string number;
    take_digits(number);
    bool real = false;
    // "a.1.2" is two keys and no number with a fraction.
    const bool is_key = !tokens_.empty() && tokens_.back().is(".");
    if (!is_key && at_ < source_.size() && source_[at_] == '.' && is_digit_at(at_ + 1)) {
      number += source_[at_++];
      take_digits(number);
      real = true;
    }
    const bool has_exponent = !is_key && at_ < source_.size() && (source_[at_] | 0x20) == 'e';
    const size_t digits = at_ + (sign_at(at_ + 1) == ' ' ? 1 : 2);
    if (has_exponent && is_digit_at(digits)) {
      number += source_.substr(at_, digits - at_);
      at_ = digits;
      take_digits(number);
      real = true;
    }
    const bool odd =
        !real && number.size() > 1 && number[0] == '0' && number.find_first_not_of('0') != kNowhere;
    if (odd || (at_ < source_.size() && begins_name(source_[at_])))
      return bad(fmt::format("found the number '{}' before '{}', expected a decimal one", shown(number),
                             shown(source_.substr(at_, 1))));
    add(real ? Token::Kind::real : Token::Kind::integer, std::move(number));
    return {};
  }

  Status read_string() {
    const char quote = source_[at_];
    std::string text;
    size_t at = at_ + 1;
    for (;; ++at) {
      if (at >= source_.size()) return bad(fmt::format("a text has no end, expected {}", quote));
      if (source_[at] == quote) break;
      if (source_[at] != '\\') {
        text += source_[at];
      } else if (!take_escape(++at, text)) {
        return bad("a text has an escape without its digits");
      }
    }
    add(Token::Kind::string, std::move(text));
    move_to(at + 1);
    return {};
  }

  // Appends the character of the escape whose letter is at `at`, and moves to its last byte.
  bool take_escape(size_t& at, std::string& text) const {
    constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeant = "\a\b\f\n\r\t\v\\'\"";
    const char c = at < source_.size() ? source_[at] : '\0';
    if (const size_t known = kLetters.find(c); known != kNowhere) {
      text += kMeant[known];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      return take_code(at, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16, text);
    } else if (c >= '0' && c <= '7') {
      size_t digits = 1;
      while (digits < 3 && at + digits < source_.size() && source_[at + digits] >= '0' &&
             source_[at + digits] <= '7')
        ++digits;
      --at;
      return take_code(at, digits, 8, text);
    } else if (c != '\n') {
      text += '\\';
      --at;  // the character is read next, unless it ends the source
    }
    return true;
  }

  bool take_code(size_t& at, size_t digits, int base, std::string& text) const {
    char32_t code = 0;
    for (size_t i = 1; i <= digits; ++i) {
      const char c = at + i < source_.size() ? source_[at + i] : '\0';
      const int digit = is_digit(c)                              ? c - '0'
                        : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                 : base;
      if (digit >= base) return false;
      code = code * static_cast<char32_t>(base) + static_cast<char32_t>(digit);
      if (code > 0x10ffff) return false;
    }
    at += digits;
    append_utf8(text, code);
    return true;
  }

  std::string_view source_;
  size_t at_ = 0;
  ptrdiff_t counted_ = 0;  // bytes whose lines are counted
  uint32_t line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokens_of(std::string_view source) {
  const std::string text = normalized(source);
  return Lexer(text).read();
}

}  // namespace tierd::jinja
