#include "core/model/text/jinja_text.h"

#include <algorithm>
#include <cctype>

namespace tierd {
namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f";
// The marks around strings and tags in a canonical text. Templates do not contain these characters.
constexpr char kStringMark = '\x01';
constexpr char kTagMark = '\x02';

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Reads a Python or Jinja string from behind its opening quote; moves `at` behind the closing one.
std::string read_string(std::string_view text, size_t& at, char quote) {
  std::string read;
  for (; at < text.size() && text[at] != quote; ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      read += text[at];
      continue;
    }
    const char next = text[++at];
    if (next == 'n' || next == 't' || next == 'r') {
      read += next == 'n' ? '\n' : next == 't' ? '\t' : '\r';
    } else {
      if (next != '\\' && next != '\'' && next != '"') read += '\\';
      read += next;
    }
  }
  ++at;
  return read;
}

class Canonical {
 public:
  explicit Canonical(const std::string& text) : text_(text) {}

  std::string write() {
    while (at_ < text_.size()) {
      const size_t tag = next_tag();
      literal(text_.substr(at_, tag - at_), tag);
      if (tag == text_.size()) break;
      at_ = tag;
      read_tag();
    }
    return std::move(out_);
  }

 private:
  size_t next_tag() const {
    for (size_t i = at_; i + 1 < text_.size(); ++i) {
      if (text_[i] == '{' && (text_[i + 1] == '{' || text_[i + 1] == '%' || text_[i + 1] == '#')) return i;
    }
    return text_.size();
  }

  // Appends the text between two tags as Jinja outputs it.
  void literal(std::string_view part, size_t tag) {
    if (after_ == After::dash) {
      part.remove_prefix(std::min(part.find_first_not_of(kSpace), part.size()));
    } else if (after_ == After::block) {
      if (part.starts_with("\n")) part.remove_prefix(1);
    }
    if (tag != text_.size()) {
      const char kind = text_[tag + 1];
      const char control = tag + 2 < text_.size() ? text_[tag + 2] : ' ';
      if (control == '-') {
        part = part.substr(0, part.find_last_not_of(kSpace) + 1);
      } else if (kind != '{' && control != '+') {
        const size_t end = part.find_last_not_of(" \t");
        const bool line = end == std::string_view::npos ? at_line_begin_ : part[end] == '\n';
        if (line) part = part.substr(0, end + 1);
      }
    }
    out_ += part;
  }

  void read_tag() {
    const char kind = text_[at_ + 1];
    at_ += 2;
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
    const std::string closing = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
    std::string inside;
    while (at_ < text_.size() && !text_.substr(at_).starts_with(closing)) {
      const char c = text_[at_++];
      if (kind != '#' && (c == '\'' || c == '"')) {
        inside += kStringMark + read_string(text_, at_, c) + kStringMark;
      } else if (kSpace.find(c) == std::string_view::npos) {
        if (spaced_ && !inside.empty() && is_word(inside.back()) && is_word(c)) inside += ' ';
        inside += c;
      }
      spaced_ = kSpace.find(c) != std::string_view::npos;
    }
    spaced_ = false;
    at_ = std::min(at_ + closing.size(), text_.size());
    const bool dash = inside.ends_with('-');
    if (dash || inside.ends_with('+')) inside.pop_back();
    after_ = dash ? After::dash : kind == '{' ? After::expression : After::block;
    at_line_begin_ = false;
    if (after_ == After::block && at_ < text_.size() && text_[at_] == '\n') at_line_begin_ = true;
    if (kind != '#') out_ += kTagMark + std::string(1, kind) + inside + kTagMark;
  }

  enum class After { start, expression, block, dash };

  std::string_view text_;
  size_t at_ = 0;
  After after_ = After::start;
  bool at_line_begin_ = true;  // the next literal begins at the beginning of a line
  bool spaced_ = false;
  std::string out_;
};

}  // namespace

std::string canonical_jinja(std::string_view text) {
  // Jinja reads every line end as a line feed and drops the last one.
  std::string lines;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') lines += text[i];
  }
  if (lines.ends_with('\n')) lines.pop_back();
  return Canonical(lines).write();
}

}  // namespace tierd
