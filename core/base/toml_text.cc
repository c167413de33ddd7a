#include "core/base/toml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tierd {
namespace {

// Tracks the depth of a TOML text: open brackets, and the dots of a key.
class Depths {
 public:
  explicit Depths(std::string_view text) : text_(text) {}

  // Returns the line at which the text becomes too deep.
  std::optional<size_t> too_deep() {
    for (; at_ < text_.size(); ++at_) {
      step(text_[at_]);
      if (open_ > kDeepestToml || dots_ > kDeepestToml) return line_;
    }
    return std::nullopt;
  }

 private:
  void step(char c) {
    if (c == '"' || c == '\'') return skip_string(c);
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
      return;
    }
    if (c == '\n') ++line_;
    if (c == '[' || c == '{') ++open_;
    if ((c == ']' || c == '}') && open_ != 0) --open_;
    // Characters that end a key, or a number in a list.
    if (c == '=' || c == ',' || c == '\n' || c == '[' || c == '{') dots_ = 0;
    if (c == '.') ++dots_;
  }
  void skip_string(char quote) {
    const std::string three(3, quote);
    const bool long_one = text_.substr(at_).starts_with(three);
    at_ += long_one ? 3 : 1;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        if (!long_one) return;  // not closed; the parser reports it
      }
      if (c == '\\' && quote == '"') {
        ++at_;
      } else if (long_one ? text_.substr(at_).starts_with(three) : c == quote) {
        at_ += long_one ? 2 : 0;
        return;
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_ = 1;
  size_t open_ = 0;
  size_t dots_ = 0;
};

}  // namespace

Result<toml::table> parse_toml(std::string_view text, const std::string& origin) {
  if (text.size() > kMostTomlBytes) {
    return Error{Code::invalid_argument, origin,
                 fmt::format("has more than {} bytes, the maximum for a TOML file", kMostTomlBytes)};
  }
  if (const auto line = Depths(text).too_deep()) {
    return Error{Code::invalid_argument, fmt::format("{}:{}", origin, *line),
                 fmt::format("tables or arrays are nested more than {} levels deep", kDeepestToml)};
  }
  try {
    return toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    return Error{Code::invalid_argument,
                 fmt::format("{}:{}", origin, static_cast<size_t>(error.source().begin.line)),
                 std::string(error.description())};
  }
}

}  // namespace tierd
