// Reads tokens one by one, for the parsers of expressions and statements.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/utf8.h"
#include "core/model/text/jinja/lexer.h"

namespace tierd::jinja {

class TokenReader {
 public:
  explicit TokenReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return at_ + 1 < tokens_.size() ? std::move(tokens_[at_++]) : tokens_[at_]; }
  bool skip(std::string_view symbol) { return now().is(symbol) && (++at_, true); }
  bool skip_name(std::string_view name) { return now().is_name(name) && (++at_, true); }

  Status expect(std::string_view symbol) {
    return skip(symbol) ? Status() : wrong_token(fmt::format("'{}'", symbol));
  }
  Status expect(Token::Kind kind, std::string_view expected) {
    if (now().kind != kind) return wrong_token(expected);
    take();
    return {};
  }
  Result<std::string> expect_name(std::string_view expected) {
    if (now().kind != Token::Kind::name) return wrong_token(expected);
    return take().text;
  }

  Error wrong_token(std::string_view expected) const {
    constexpr std::string_view kFound[] = {
        "text", "{{", "}}", "{%", "%}", "", "a text", "", "", "", "the end of the template"};
    const std::string_view kind = kFound[static_cast<size_t>(now().kind)];
    const std::string found = kind.empty() ? fmt::format("'{}'", shown(now().text)) : std::string(kind);
    return error(fmt::format("found {}, expected {}", found, expected));
  }
  Error error(std::string detail, Code code = Code::invalid_argument) const {
    return {code, fmt::format("line {}", now().line), std::move(detail)};
  }

 private:
  std::vector<Token> tokens_;  // the last one is an end
  size_t at_ = 0;
};

}  // namespace tierd::jinja
