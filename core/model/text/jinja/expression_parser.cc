#include "core/model/text/jinja/expression_parser.h"

#include <charconv>

#include "core/model/text/jinja/filters.h"
#include "core/model/text/jinja/tests.h"

namespace tierd::jinja {
namespace {

constexpr uint32_t kDeepestExpression = 200;

}  // namespace

ExpressionPtr ExpressionParser::make(Expression::Kind kind) const {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = tokens_.now().line;
  return made;
}

// Bounds the depth of the tree, and so that of every walk over it.
Result<ExpressionPtr> ExpressionParser::finished(ExpressionPtr made) {
  const auto look = [&](const ExpressionPtr& part) {
    if (part != nullptr) made->depth = std::max(made->depth, part->depth + 1);
  };
  for (const ExpressionPtr& part : made->parts) look(part);
  for (const ExpressionPtr& value : made->arguments.values) look(value);
  for (const auto& [name, value] : made->arguments.named) look(value);
  if (made->depth > kDeepestExpression)
    return tokens_.error(fmt::format("an expression is deeper than {} levels", kDeepestExpression));
  return made;
}

Result<ExpressionPtr> ExpressionParser::with(ExpressionPtr made, ExpressionPtr first, ExpressionPtr second) {
  made->parts.push_back(std::move(first));
  if (second != nullptr) made->parts.push_back(std::move(second));
  return finished(std::move(made));
}

Result<ExpressionPtr> ExpressionParser::expression() {
  if (++depth_ > kDeepestExpression)
    return tokens_.error(fmt::format("an expression is deeper than {} levels", kDeepestExpression));
  auto read = choice();
  --depth_;
  return read;
}

Result<ExpressionPtr> ExpressionParser::choice() {
  const bool outer = conditional;
  TIERD_ASSIGN(ExpressionPtr value, either());
  while (tokens_.now().is_name("if")) {
    ExpressionPtr made = make(Expression::Kind::choice);
    tokens_.take();
    conditional = true;
    TIERD_ASSIGN(ExpressionPtr condition, either());
    ExpressionPtr other;
    if (tokens_.skip_name("else")) {
      TIERD_ASSIGN(other, expression());
    }
    conditional = outer;
    made->parts.push_back(std::move(value));
    made->parts.push_back(std::move(condition));
    made->parts.push_back(std::move(other));
    TIERD_ASSIGN(value, finished(std::move(made)));
  }
  return value;
}

Result<ExpressionPtr> ExpressionParser::either() {
  TIERD_ASSIGN(ExpressionPtr left, both());
  while (tokens_.now().is_name("or")) {
    ExpressionPtr made = make(Expression::Kind::either);
    tokens_.take();
    TIERD_ASSIGN(ExpressionPtr right, both());
    TIERD_ASSIGN(left, with(std::move(made), std::move(left), std::move(right)));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::both() {
  TIERD_ASSIGN(ExpressionPtr left, inverse());
  while (tokens_.now().is_name("and")) {
    ExpressionPtr made = make(Expression::Kind::both);
    tokens_.take();
    TIERD_ASSIGN(ExpressionPtr right, inverse());
    TIERD_ASSIGN(left, with(std::move(made), std::move(left), std::move(right)));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::inverse() {
  if (!tokens_.now().is_name("not")) return comparison();
  if (++depth_ > kDeepestExpression)
    return tokens_.error(fmt::format("an expression is deeper than {} levels", kDeepestExpression));
  ExpressionPtr made = make(Expression::Kind::inverse);
  tokens_.take();
  TIERD_ASSIGN(ExpressionPtr of, inverse());
  --depth_;
  return with(std::move(made), std::move(of));
}

bool ExpressionParser::at_operator(std::string& found, std::initializer_list<std::string_view> operators) {
  for (const std::string_view one : operators) {
    if (!tokens_.now().is(one)) continue;
    found = one;
    return true;
  }
  return false;
}

Result<ExpressionPtr> ExpressionParser::comparison() {
  TIERD_ASSIGN(ExpressionPtr left, sum());
  ExpressionPtr made = make(Expression::Kind::comparison);
  std::string found;
  for (;;) {
    if (at_operator(found, {"==", "!=", "<", "<=", ">", ">="})) {
      tokens_.take();
    } else if (tokens_.now().is_name("in")) {
      tokens_.take();
      found = "in";
    } else if (tokens_.now().is_name("not") && tokens_.next().is_name("in")) {
      tokens_.take(), tokens_.take();
      found = "not in";
    } else {
      break;
    }
    if (made->parts.empty()) made->parts.push_back(std::move(left));
    made->operators.push_back(found);
    TIERD_ASSIGN(made->parts.emplace_back(), sum());
  }
  return made->parts.empty() ? Result<ExpressionPtr>(std::move(left)) : finished(std::move(made));
}

Result<ExpressionPtr> ExpressionParser::operations(Read side,
                                                   std::initializer_list<std::string_view> operators) {
  TIERD_ASSIGN(ExpressionPtr left, (this->*side)());
  for (std::string found; at_operator(found, operators);) {
    ExpressionPtr made = make(Expression::Kind::operation);
    made->name = found;
    tokens_.take();
    TIERD_ASSIGN(ExpressionPtr right, (this->*side)());
    TIERD_ASSIGN(left, with(std::move(made), std::move(left), std::move(right)));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::sum() {
  return operations(&ExpressionParser::joined, {"+", "-"});
}
Result<ExpressionPtr> ExpressionParser::joined() {
  return operations(&ExpressionParser::product, {"~"});
}
Result<ExpressionPtr> ExpressionParser::product() {
  return operations(&ExpressionParser::power, {"*", "/", "//", "%"});
}
Result<ExpressionPtr> ExpressionParser::power() {
  return operations(&ExpressionParser::filtered, {"**"});
}

Result<ExpressionPtr> ExpressionParser::filtered() {
  TIERD_ASSIGN(ExpressionPtr value, sign());
  return with_filters(std::move(value));
}

Result<ExpressionPtr> ExpressionParser::sign() {
  std::string found;
  if (!at_operator(found, {"-", "+"})) {
    TIERD_ASSIGN(ExpressionPtr value, primary());
    return with_suffixes(std::move(value));
  }
  if (++depth_ > kDeepestExpression)
    return tokens_.error(fmt::format("an expression is deeper than {} levels", kDeepestExpression));
  ExpressionPtr made = make(Expression::Kind::sign);
  made->name = found;
  tokens_.take();
  TIERD_ASSIGN(ExpressionPtr of, sign());
  --depth_;
  return with(std::move(made), std::move(of));
}

Result<ExpressionPtr> ExpressionParser::with_suffixes(ExpressionPtr value) {
  for (;;) {
    if (tokens_.now().is(".")) {
      TIERD_ASSIGN(value, attribute(std::move(value)));
    } else if (tokens_.now().is("[")) {
      TIERD_ASSIGN(value, subscript(std::move(value)));
    } else if (tokens_.now().is("(")) {
      ExpressionPtr made = make(Expression::Kind::call);
      TIERD_ASSIGN(made->arguments, arguments());
      TIERD_ASSIGN(value, with(std::move(made), std::move(value)));
    } else {
      return value;
    }
  }
}

Result<ExpressionPtr> ExpressionParser::with_filters(ExpressionPtr value) {
  for (;;) {
    if (tokens_.skip("|")) {
      TIERD_ASSIGN(value, filter(std::move(value)));
    } else if (tokens_.now().is_name("is")) {
      TIERD_ASSIGN(value, test(std::move(value)));
    } else if (tokens_.now().is("(")) {  // of what a filter returns
      ExpressionPtr made = make(Expression::Kind::call);
      TIERD_ASSIGN(made->arguments, arguments());
      TIERD_ASSIGN(value, with(std::move(made), std::move(value)));
    } else {
      return value;
    }
  }
}

Result<std::string> ExpressionParser::dotted_name(std::string_view expected) {
  TIERD_ASSIGN(std::string name, tokens_.expect_name(expected));
  while (tokens_.skip(".")) {
    TIERD_ASSIGN(const std::string more, tokens_.expect_name(expected));
    name += "." + more;
  }
  return name;
}

Result<ExpressionPtr> ExpressionParser::filter(ExpressionPtr value) {
  ExpressionPtr made = make(Expression::Kind::filter);
  TIERD_ASSIGN(made->name, dotted_name("the name of a filter"));
  if (!conditional && !is_filter(made->name))
    return tokens_.error(fmt::format("the filter '{}' is not supported", shown(made->name)),
                         Code::unsupported);
  if (tokens_.now().is("(")) {
    TIERD_ASSIGN(made->arguments, arguments());
  }
  made->parts.push_back(std::move(value));
  return finished(std::move(made));
}

Result<ExpressionPtr> ExpressionParser::filters_of_block() {
  TIERD_ASSIGN(ExpressionPtr value, filter(nullptr));
  while (tokens_.skip("|")) {
    TIERD_ASSIGN(value, filter(std::move(value)));
  }
  return value;
}

Result<ExpressionPtr> ExpressionParser::test(ExpressionPtr value) {
  tokens_.take();
  const bool inverted = tokens_.skip_name("not");
  ExpressionPtr made = make(Expression::Kind::test);
  TIERD_ASSIGN(made->name, dotted_name("the name of a test"));
  if (!conditional && !is_test(made->name))
    return tokens_.error(fmt::format("the test '{}' is not supported", shown(made->name)), Code::unsupported);
  const Token& now = tokens_.now();
  if (now.is("(")) {
    TIERD_ASSIGN(made->arguments, arguments());
  } else if ((now.kind >= Token::Kind::name && now.kind <= Token::Kind::real && !now.is_name("else") &&
              !now.is_name("or") && !now.is_name("and")) ||
             now.is("[") || now.is("{")) {
    if (now.is_name("is")) return tokens_.error("tests cannot be chained with 'is'");
    TIERD_ASSIGN(ExpressionPtr argument, primary());
    TIERD_ASSIGN(made->arguments.values.emplace_back(), with_suffixes(std::move(argument)));
  }
  made->parts.push_back(std::move(value));
  TIERD_ASSIGN(ExpressionPtr tested, finished(std::move(made)));
  return inverted ? with(make(Expression::Kind::inverse), std::move(tested))
                  : Result<ExpressionPtr>(std::move(tested));
}

Result<ExpressionPtr> ExpressionParser::attribute(ExpressionPtr object) {
  tokens_.take();
  if (tokens_.now().kind == Token::Kind::integer) {
    ExpressionPtr made = make(Expression::Kind::item);
    TIERD_ASSIGN(ExpressionPtr key, number());
    return with(std::move(made), std::move(object), std::move(key));
  }
  ExpressionPtr made = make(Expression::Kind::attribute);
  TIERD_ASSIGN(made->name, tokens_.expect_name("the name of an attribute"));
  return with(std::move(made), std::move(object));
}

Result<ExpressionPtr> ExpressionParser::subscript(ExpressionPtr object) {
  ExpressionPtr made = make(Expression::Kind::item);
  tokens_.take();
  std::vector<ExpressionPtr> parts;
  for (;;) {
    ExpressionPtr part;
    if (!tokens_.now().is(":") && !tokens_.now().is("]")) {
      TIERD_ASSIGN(part, expression());
    }
    parts.push_back(std::move(part));
    if (!tokens_.skip(":")) break;
    made->kind = Expression::Kind::slice;
  }
  TIERD_TRY(tokens_.expect("]"));
  if (parts.size() > 3 || (made->kind == Expression::Kind::item && parts[0] == nullptr))
    return tokens_.error("found a subscript that is empty or has more than 3 parts");
  parts.resize(made->kind == Expression::Kind::slice ? 3 : 1);
  made->parts.push_back(std::move(object));
  for (ExpressionPtr& part : parts) made->parts.push_back(std::move(part));
  return finished(std::move(made));
}

Result<ArgumentList> ExpressionParser::arguments() {
  ArgumentList list;
  TIERD_TRY(tokens_.expect("("));
  while (!tokens_.skip(")")) {
    if (!list.values.empty() || !list.named.empty()) {
      TIERD_TRY(tokens_.expect(","));
      if (tokens_.skip(")")) break;
    }
    if (tokens_.now().is("*") || tokens_.now().is("**"))
      return tokens_.error("arguments with * or ** are not supported", Code::unsupported);
    if (tokens_.now().kind == Token::Kind::name && tokens_.next().is("=")) {
      std::string name = tokens_.take().text;
      tokens_.take();
      TIERD_ASSIGN(ExpressionPtr value, expression());
      list.named.emplace_back(std::move(name), std::move(value));
    } else {
      if (!list.named.empty())
        return tokens_.error("found an argument without a name behind one with a name");
      TIERD_ASSIGN(list.values.emplace_back(), expression());
    }
  }
  return list;
}

bool ExpressionParser::ends_tuple() const {
  const Token& now = tokens_.now();
  return now.kind == Token::Kind::output_end || now.kind == Token::Kind::tag_end || now.is(")") ||
         now.is_name("in") || now.is_name("recursive");
}

Result<ExpressionPtr> ExpressionParser::tuple(bool choices) {
  ExpressionPtr made = make(Expression::Kind::tuple);
  bool several = false;
  while (!(several && ends_tuple())) {
    TIERD_ASSIGN(made->parts.emplace_back(), choices ? expression() : either());
    if (!tokens_.skip(",")) break;
    several = true;
  }
  return several ? finished(std::move(made)) : Result<ExpressionPtr>(std::move(made->parts[0]));
}

Result<ExpressionPtr> ExpressionParser::in_parentheses() {
  ExpressionPtr made = make(Expression::Kind::tuple);
  tokens_.take();
  if (tokens_.skip(")")) return made;
  TIERD_ASSIGN(ExpressionPtr inside, tuple());
  TIERD_TRY(tokens_.expect(")"));
  return inside;
}

Result<ExpressionPtr> ExpressionParser::list() {
  ExpressionPtr made = make(Expression::Kind::list);
  tokens_.take();
  while (!tokens_.skip("]")) {
    if (!made->parts.empty()) {
      TIERD_TRY(tokens_.expect(","));
      if (tokens_.skip("]")) break;
    }
    TIERD_ASSIGN(made->parts.emplace_back(), expression());
  }
  return finished(std::move(made));
}

Result<ExpressionPtr> ExpressionParser::dict() {
  ExpressionPtr made = make(Expression::Kind::dict);
  tokens_.take();
  while (!tokens_.skip("}")) {
    if (!made->parts.empty()) {
      TIERD_TRY(tokens_.expect(","));
      if (tokens_.skip("}")) break;
    }
    TIERD_ASSIGN(made->parts.emplace_back(), expression());
    TIERD_TRY(tokens_.expect(":"));
    TIERD_ASSIGN(made->parts.emplace_back(), expression());
  }
  return finished(std::move(made));
}

Result<ExpressionPtr> ExpressionParser::number() {
  ExpressionPtr made = make(Expression::Kind::constant);
  const Token token = tokens_.take();
  const char *const begin = token.text.data(), *const end = begin + token.text.size();
  int64_t whole = 0;
  double real = 0;
  const bool is_whole = token.kind == Token::Kind::integer;
  const auto read = is_whole ? std::from_chars(begin, end, whole) : std::from_chars(begin, end, real);
  if (read.ec != std::errc())
    return tokens_.error(fmt::format("the number {} is too large", shown(token.text)));
  made->constant = is_whole ? Value(whole) : Value(real);
  return made;
}

Result<ExpressionPtr> ExpressionParser::primary() {
  const Token& now = tokens_.now();
  ExpressionPtr made = make(Expression::Kind::constant);
  if (now.kind == Token::Kind::integer || now.kind == Token::Kind::real) return number();
  if (now.is("(")) return in_parentheses();
  if (now.is("[")) return list();
  if (now.is("{")) return dict();
  if (now.kind == Token::Kind::string) {
    std::string text;
    while (tokens_.now().kind == Token::Kind::string) text += tokens_.take().text;
    made->constant = constant_text(std::move(text));
    return made;
  }
  if (now.kind != Token::Kind::name) return tokens_.wrong_token("an expression");
  std::string name = tokens_.take().text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    made->constant = Value(name == "true" || name == "True");
  } else if (name == "none" || name == "None") {
    made->constant = Value(None());
  } else {
    specials.rest |= name == "varargs";
    specials.options |= name == "kwargs";
    specials.caller |= name == "caller";
    made->kind = Expression::Kind::name;
    made->name = std::move(name);
  }
  return made;
}

}  // namespace tierd::jinja
