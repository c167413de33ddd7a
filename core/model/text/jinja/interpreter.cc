#include "core/model/text/jinja/interpreter.h"

#include <fmt/format.h>

#include "core/model/text/jinja/functions.h"
#include "core/model/text/jinja/operators.h"

namespace tierd::jinja {
namespace {

constexpr uint32_t kDeepestLevel = 500;

// Gives an error the line that it has not yet.
Error at_line(Error error, uint32_t line) {
  if (error.origin.empty()) error.origin = fmt::format("line {}", line);
  return error;
}

}  // namespace

Result<std::string> Interpreter::render(const Body& body, Scope& variables) {
  std::string out;
  TIERD_TRY(run(body, variables, out));
  return out;
}

Status Interpreter::append(std::string& out, std::string_view text) const {
  if (out.size() + text.size() > kLargestValue)
    return wrong("the text of the template is larger than 32 MiB");
  out += text;
  return {};
}

Status Interpreter::Level::check() const {
  if (depth <= kDeepestLevel) return {};
  return wrong(fmt::format("blocks, expressions and macros are nested deeper than {} levels", kDeepestLevel));
}

Result<Interpreter::Flow> Interpreter::run(const Body& body, Scope& scope, std::string& out) {
  const Level level(depth_);
  TIERD_TRY(level.check());
  for (const Statement& statement : body) {
    auto flow = run(statement, scope, out);
    if (!flow.ok()) return at_line(flow.error(), statement.line);
    if (*flow != Flow::next) return flow;
  }
  return Flow::next;
}

Result<Interpreter::Flow> Interpreter::run(const Statement& statement, Scope& scope, std::string& out) {
  using Kind = Statement::Kind;
  heap_.spend(1);
  TIERD_TRY(heap_.check());
  const auto next = [](const Status& status) {
    return status.ok() ? Result<Flow>(Flow::next) : status.error();
  };
  switch (statement.kind) {
    case Kind::text:
      heap_.spend_on(statement.text.size());
      return next(append(out, statement.text));
    case Kind::output:
      return next(write(statement, scope, out));
    case Kind::condition:
      return run_branches(statement, scope, out);
    case Kind::loop:
      return run_loop(statement, scope, out);
    case Kind::assignment: {
      TIERD_ASSIGN(Value value, value_of(*statement.value, scope));
      return next(assign(statement.target, std::move(value), scope));
    }
    case Kind::block:
      return next(run_block(statement, scope));
    case Kind::macro:
      scope.variables[statement.macro->name] = macro_value(*statement.macro, scope);
      return Flow::next;
    case Kind::call:
      return next(run_call(statement, scope, out));
    case Kind::filtered:
      return run_filtered(statement, scope, out);
    case Kind::with:
      return run_with(statement, scope, out);
    case Kind::scope: {
      Scope inner{&scope};
      return run(statement.body, inner, out);
    }
    case Kind::leave:
      return Flow::leave;
    case Kind::skip:
      return Flow::skip;
  }
  return Flow::next;
}

Status Interpreter::write(const Statement& statement, Scope& scope, std::string& out) {
  TIERD_ASSIGN(const Value value, value_of(*statement.value, scope));
  heap_.spend_on(weight_of(value));
  if (value.text() != nullptr) return append(out, *value.text());
  TIERD_ASSIGN(const std::string text, str(value));
  return append(out, text);
}

Result<Interpreter::Flow> Interpreter::run_branches(const Statement& statement, Scope& scope,
                                                    std::string& out) {
  for (const auto& [condition, body] : statement.branches) {
    TIERD_ASSIGN(const Value value, value_of(*condition, scope));
    if (is_true(value)) return run(body, scope, out);
  }
  return run(statement.otherwise, scope, out);
}

Result<std::vector<Value>> Interpreter::looped_items(const Statement& statement, Scope& scope) {
  TIERD_ASSIGN(const Value value, value_of(*statement.value, scope));
  TIERD_ASSIGN(std::vector<Value> items, items_of(heap_, value));
  if (statement.filter == nullptr) return items;
  std::vector<Value> kept;
  for (Value& item : items) {
    Scope inner{&scope};
    TIERD_TRY(assign(statement.target, item, inner));
    TIERD_ASSIGN(const Value keeps, value_of(*statement.filter, inner));
    if (is_true(keeps)) kept.push_back(std::move(item));
  }
  return kept;
}

Result<Interpreter::Flow> Interpreter::run_loop(const Statement& statement, Scope& scope, std::string& out) {
  TIERD_ASSIGN(std::vector<Value> items, looped_items(statement, scope));
  if (items.empty()) return run(statement.otherwise, scope, out);
  const auto state = std::make_shared<LoopState>();
  state->items = std::move(items);
  const Value loop((std::shared_ptr<Object>(state)));
  for (; state->index < state->items.size(); ++state->index) {
    Scope inner{&scope};
    inner.variables["loop"] = loop;
    TIERD_TRY(assign(statement.target, state->items[state->index], inner));
    TIERD_ASSIGN(const Flow flow, run(statement.body, inner, out));
    if (flow == Flow::leave) break;
  }
  return Flow::next;
}

Status Interpreter::run_block(const Statement& statement, Scope& scope) {
  Scope inner{&scope};
  std::string text;
  TIERD_TRY(run(statement.body, inner, text));
  Value value = heap_.text(std::move(text));
  if (statement.filter != nullptr) {
    TIERD_ASSIGN(value, value_of_filter(*statement.filter, inner, &value));
  }
  return assign(statement.target, std::move(value), scope);
}

Status Interpreter::run_call(const Statement& statement, Scope& scope, std::string& out) {
  TIERD_ASSIGN(const Value result, call(*statement.value, scope, macro_value(*statement.macro, scope)));
  TIERD_ASSIGN(const std::string text, str(result));
  return append(out, text);
}

Result<Interpreter::Flow> Interpreter::run_filtered(const Statement& statement, Scope& scope,
                                                    std::string& out) {
  Scope inner{&scope};
  std::string text;
  TIERD_ASSIGN(const Flow flow, run(statement.body, inner, text));
  if (flow != Flow::next) return flow;
  const Value base = heap_.text(std::move(text));
  TIERD_ASSIGN(const Value value, value_of_filter(*statement.filter, inner, &base));
  TIERD_ASSIGN(const std::string filtered, str(value));
  TIERD_TRY(append(out, filtered));
  return Flow::next;
}

Result<Interpreter::Flow> Interpreter::run_with(const Statement& statement, Scope& scope, std::string& out) {
  Scope inner{&scope};
  for (const auto& [target, expression] : statement.assignments) {
    TIERD_ASSIGN(Value value, value_of(*expression, scope));
    TIERD_TRY(assign(target, std::move(value), inner));
  }
  return run(statement.body, inner, out);
}

Status Interpreter::assign(const Target& target, Value value, Scope& scope) {
  if (!target.attribute.empty()) {
    const Value* space = nullptr;
    for (const Scope* at = &scope; at != nullptr && space == nullptr; at = at->outer) {
      const auto found = at->variables.find(target.names[0]);
      if (found != at->variables.end()) space = &found->second;
    }
    auto* const found = space == nullptr ? nullptr : dynamic_cast<Namespace*>(space->object());
    if (found == nullptr)
      return wrong(
          fmt::format("'{}' is no namespace, so '{}' cannot be set", target.names[0], target.attribute));
    return set_in_namespace(*found, target.attribute, std::move(value));
  }
  if (!target.is_tuple) {
    scope.variables[target.names[0]] = std::move(value);
    return {};
  }
  TIERD_ASSIGN(std::vector<Value> items, items_of(heap_, value));
  if (items.size() != target.names.size())
    return wrong(fmt::format("{} values are unpacked, expected {}", items.size(), target.names.size()));
  for (size_t i = 0; i < items.size(); ++i) scope.variables[target.names[i]] = std::move(items[i]);
  return {};
}

}  // namespace tierd::jinja
