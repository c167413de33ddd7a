#include "core/model/text/jinja/parser.h"

#include <algorithm>

#include "core/model/text/jinja/expression_parser.h"
#include "core/model/text/jinja/token_reader.h"

namespace tierd::jinja {
namespace {

constexpr uint32_t kDeepestBlock = 100;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)), expressions_(tokens_) {}

  Result<Body> read() {
    TIERD_ASSIGN(Body body, body_until({}));
    if (tokens_.now().kind != Token::Kind::end) return tokens_.wrong_token("the end of the template");
    return body;
  }

 private:
  // Keeps what a block changes for its inside, and restores it.
  class Inside {
   public:
    Inside(Parser& parser, bool conditional, uint32_t loops)
        : parser_(parser), conditional_(parser.expressions_.conditional), loops_(parser.loops_) {
      parser.expressions_.conditional = conditional;
      parser.loops_ = loops;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() {
      parser_.expressions_.conditional = conditional_;
      parser_.loops_ = loops_;
    }

   private:
    Parser& parser_;
    bool conditional_;
    uint32_t loops_;
  };

  // Reads statements up to a tag whose name is one of `ends`, which is then the next token.
  Result<Body> body_until(std::vector<std::string_view> ends) {
    if (++depth_ > kDeepestBlock)
      return tokens_.error(fmt::format("blocks are nested deeper than {} levels", kDeepestBlock));
    Body body;
    for (;;) {
      const Token& now = tokens_.now();
      if (now.kind == Token::Kind::end) {
        if (!ends.empty()) return tokens_.wrong_token(fmt::format("{{% {} %}}", ends.back()));
        break;
      }
      if (now.kind == Token::Kind::text) {
        Statement text = make(Statement::Kind::text);
        text.text = tokens_.take().text;
        body.push_back(std::move(text));
      } else if (now.kind == Token::Kind::output_begin) {
        Statement output = make(Statement::Kind::output);
        tokens_.take();
        TIERD_ASSIGN(output.value, expressions_.tuple());
        TIERD_TRY(tokens_.expect(Token::Kind::output_end, "}}"));
        body.push_back(std::move(output));
      } else {
        TIERD_TRY(tokens_.expect(Token::Kind::tag_begin, "{%"));
        if (std::ranges::any_of(ends, [&](std::string_view end) { return tokens_.now().is_name(end); }))
          break;
        TIERD_ASSIGN(body.emplace_back(), statement());
      }
    }
    --depth_;
    return body;
  }
  Result<Body> body_to(std::string_view end) {
    TIERD_ASSIGN(Body body, body_until({end}));
    tokens_.take();
    TIERD_TRY(tag_end());
    return body;
  }

  Statement make(Statement::Kind kind) const {
    Statement made;
    made.kind = kind;
    made.line = tokens_.now().line;
    return made;
  }
  Status tag_end() { return tokens_.expect(Token::Kind::tag_end, "%}"); }

  Result<Statement> statement() {
    if (tokens_.skip_name("if")) return condition();
    if (tokens_.skip_name("for")) return loop();
    if (tokens_.skip_name("set")) return assignment();
    if (tokens_.skip_name("macro")) return macro();
    if (tokens_.skip_name("call")) return call();
    if (tokens_.skip_name("filter")) return filtered();
    if (tokens_.skip_name("with")) return with();
    if (tokens_.skip_name("generation")) return generation();
    if (tokens_.now().is_name("break")) return jump(Statement::Kind::leave);
    if (tokens_.now().is_name("continue")) return jump(Statement::Kind::skip);
    for (const std::string_view other :
         {"include", "import", "from", "extends", "block", "autoescape", "do", "trans"}) {
      if (tokens_.now().is_name(other))
        return tokens_.error(fmt::format("the tag '{}' is not supported", other), Code::unsupported);
    }
    return tokens_.wrong_token(
        "a tag: if, for, set, macro, call, filter, with, generation, break or continue");
  }

  Result<Statement> jump(Statement::Kind kind) {
    if (loops_ == 0) return tokens_.error(fmt::format("'{}' is outside a loop", tokens_.now().text));
    Statement made = make(kind);
    tokens_.take();
    TIERD_TRY(tag_end());
    return made;
  }

  Result<Statement> condition() {
    Statement made = make(Statement::Kind::condition);
    const Inside inside(*this, true, loops_);
    for (;;) {
      TIERD_ASSIGN(ExpressionPtr test, expressions_.tuple(false));
      TIERD_TRY(tag_end());
      TIERD_ASSIGN(Body body, body_until({"elif", "else", "endif"}));
      made.branches.emplace_back(std::move(test), std::move(body));
      if (!tokens_.skip_name("elif")) break;
    }
    if (tokens_.skip_name("else")) {
      TIERD_TRY(tag_end());
      TIERD_ASSIGN(made.otherwise, body_until({"endif"}));
    }
    tokens_.take();
    TIERD_TRY(tag_end());
    return made;
  }

  Result<Target> target(bool with_namespace) {
    Target made;
    for (;;) {
      const bool bracket = !with_namespace && tokens_.skip("(");
      TIERD_ASSIGN(made.names.emplace_back(), tokens_.expect_name("the name of a variable"));
      for (const std::string_view kept : {"true", "false", "none", "True", "False", "None"}) {
        if (made.names.back() == kept) return tokens_.error(fmt::format("'{}' cannot be set", kept));
      }
      if (with_namespace && made.names.size() == 1 && tokens_.skip(".")) {
        TIERD_ASSIGN(made.attribute, tokens_.expect_name("the name of an attribute"));
        return made;
      }
      if (bracket || !tokens_.skip(",")) {
        while (bracket && tokens_.skip(",")) {
          TIERD_ASSIGN(made.names.emplace_back(), tokens_.expect_name("the name of a variable"));
        }
        if (bracket) TIERD_TRY(tokens_.expect(")"));
        made.is_tuple |= made.names.size() > 1;
        return made;
      }
      made.is_tuple = true;
      if (tokens_.now().is("=") || tokens_.now().is_name("in")) return made;
    }
  }

  Result<Statement> loop() {
    Statement made = make(Statement::Kind::loop);
    TIERD_ASSIGN(made.target, target(false));
    if (!tokens_.skip_name("in")) return tokens_.wrong_token("'in'");
    TIERD_ASSIGN(made.value, expressions_.tuple(false));
    const Inside inside(*this, false, loops_ + 1);
    if (tokens_.skip_name("if")) {
      TIERD_ASSIGN(made.filter, expressions_.expression());
    }
    if (tokens_.now().is_name("recursive"))
      return tokens_.error("recursive loops are not supported", Code::unsupported);
    TIERD_TRY(tag_end());
    TIERD_ASSIGN(made.body, body_until({"else", "endfor"}));
    if (tokens_.skip_name("else")) {
      TIERD_TRY(tag_end());
      const Inside after(*this, false, loops_ - 1);
      TIERD_ASSIGN(made.otherwise, body_until({"endfor"}));
    }
    tokens_.take();
    TIERD_TRY(tag_end());
    return made;
  }

  Result<Statement> assignment() {
    Statement made = make(Statement::Kind::assignment);
    TIERD_ASSIGN(made.target, target(true));
    if (tokens_.skip("=")) {
      TIERD_ASSIGN(made.value, expressions_.tuple());
      TIERD_TRY(tag_end());
      return made;
    }
    made.kind = Statement::Kind::block;
    const Inside inside(*this, false, loops_);
    if (tokens_.skip("|")) {
      TIERD_ASSIGN(made.filter, expressions_.filters_of_block());
    }
    TIERD_TRY(tag_end());
    TIERD_ASSIGN(made.body, body_to("endset"));
    return made;
  }

  Status read_parameters(Macro& macro) {
    TIERD_TRY(tokens_.expect("("));
    while (!tokens_.skip(")")) {
      if (!macro.parameters.empty()) TIERD_TRY(tokens_.expect(","));
      TIERD_ASSIGN(std::string name, tokens_.expect_name("the name of a parameter"));
      ExpressionPtr value;
      if (tokens_.skip("=")) {
        TIERD_ASSIGN(value, expressions_.expression());
      } else if (!macro.parameters.empty() && macro.parameters.back().second != nullptr) {
        return tokens_.error("found a parameter without a default behind one with a default");
      }
      macro.parameters.emplace_back(std::move(name), std::move(value));
    }
    return {};
  }

  Status read_macro_body(Macro& macro, std::string_view end) {
    const SpecialNames outer = std::exchange(expressions_.specials, {});
    const Inside inside(*this, false, 0);
    TIERD_ASSIGN(macro.body, body_to(end));
    macro.reads = std::exchange(expressions_.specials, outer);
    return {};
  }

  Result<Statement> macro() {
    Statement made = make(Statement::Kind::macro);
    made.macro = std::make_shared<Macro>();
    TIERD_ASSIGN(made.macro->name, tokens_.expect_name("the name of a macro"));
    TIERD_TRY(read_parameters(*made.macro));
    TIERD_TRY(tag_end());
    TIERD_TRY(read_macro_body(*made.macro, "endmacro"));
    return made;
  }

  Result<Statement> call() {
    Statement made = make(Statement::Kind::call);
    made.macro = std::make_shared<Macro>();
    made.macro->name = "caller";
    if (tokens_.now().is("(")) TIERD_TRY(read_parameters(*made.macro));
    TIERD_ASSIGN(made.value, expressions_.expression());
    if (made.value->kind != Expression::Kind::call)
      return tokens_.error("{% call %} has no call, expected one of a macro");
    TIERD_TRY(tag_end());
    TIERD_TRY(read_macro_body(*made.macro, "endcall"));
    return made;
  }

  Result<Statement> filtered() {
    Statement made = make(Statement::Kind::filtered);
    const Inside inside(*this, false, loops_);
    TIERD_ASSIGN(made.filter, expressions_.filters_of_block());
    TIERD_TRY(tag_end());
    TIERD_ASSIGN(made.body, body_to("endfilter"));
    return made;
  }

  Result<Statement> with() {
    Statement made = make(Statement::Kind::with);
    while (tokens_.now().kind != Token::Kind::tag_end) {
      if (!made.assignments.empty()) TIERD_TRY(tokens_.expect(","));
      TIERD_ASSIGN(Target to, target(false));
      TIERD_TRY(tokens_.expect("="));
      TIERD_ASSIGN(ExpressionPtr value, expressions_.expression());
      made.assignments.emplace_back(std::move(to), std::move(value));
    }
    TIERD_TRY(tag_end());
    const Inside inside(*this, false, loops_);
    TIERD_ASSIGN(made.body, body_to("endwith"));
    return made;
  }

  Result<Statement> generation() {
    Statement made = make(Statement::Kind::scope);
    TIERD_TRY(tag_end());
    const Inside inside(*this, false, 0);
    TIERD_ASSIGN(made.body, body_to("endgeneration"));
    return made;
  }

  TokenReader tokens_;
  ExpressionParser expressions_;
  uint32_t depth_ = 0;
  uint32_t loops_ = 0;  // around the statement, inside its macro
};

}  // namespace

Result<Body> parse(std::string_view source) {
  TIERD_ASSIGN(std::vector<Token> tokens, tokens_of(source));
  return Parser(std::move(tokens)).read();
}

}  // namespace tierd::jinja
