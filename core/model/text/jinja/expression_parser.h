// Reads expressions with jinja2's precedence.
#pragma once

#include "core/model/text/jinja/syntax.h"
#include "core/model/text/jinja/token_reader.h"

namespace tierd::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenReader& tokens) : tokens_(tokens) {}

  Result<ExpressionPtr> expression();
  // Reads an expression, or several with commas between them as a tuple. `choices`: "a if b else c" is one.
  Result<ExpressionPtr> tuple(bool choices = true);
  // Reads filters: "| a | b(c)" after a value, or "a | b" of a block, whose value is NULL.
  Result<ExpressionPtr> filters_of_block();
  Result<ArgumentList> arguments();
  Result<ExpressionPtr> primary();

  // Names of unknown filters and tests are refused here, except under a condition, as in jinja2.
  bool conditional = false;
  SpecialNames specials;  // of the macro that is read

 private:
  using Read = Result<ExpressionPtr> (ExpressionParser::*)();
  ExpressionPtr make(Expression::Kind kind) const;
  Result<ExpressionPtr> with(ExpressionPtr made, ExpressionPtr first, ExpressionPtr second = nullptr);
  Result<ExpressionPtr> finished(ExpressionPtr made);
  Result<ExpressionPtr> operations(Read side, std::initializer_list<std::string_view> operators);
  Result<ExpressionPtr> choice();
  Result<ExpressionPtr> either();
  Result<ExpressionPtr> both();
  Result<ExpressionPtr> inverse();
  Result<ExpressionPtr> comparison();
  Result<ExpressionPtr> sum();
  Result<ExpressionPtr> joined();
  Result<ExpressionPtr> product();
  Result<ExpressionPtr> power();
  Result<ExpressionPtr> filtered();
  Result<ExpressionPtr> sign();
  Result<ExpressionPtr> with_suffixes(ExpressionPtr value);
  Result<ExpressionPtr> with_filters(ExpressionPtr value);
  Result<ExpressionPtr> filter(ExpressionPtr value);
  Result<ExpressionPtr> test(ExpressionPtr value);
  Result<ExpressionPtr> attribute(ExpressionPtr object);
  Result<ExpressionPtr> subscript(ExpressionPtr object);
  Result<ExpressionPtr> in_parentheses();
  Result<ExpressionPtr> list();
  Result<ExpressionPtr> dict();
  Result<ExpressionPtr> number();
  Result<std::string> dotted_name(std::string_view expected);
  bool ends_tuple() const;
  bool at_operator(std::string& found, std::initializer_list<std::string_view> operators);

  TokenReader& tokens_;
  uint32_t depth_ = 0;
};

}  // namespace tierd::jinja
