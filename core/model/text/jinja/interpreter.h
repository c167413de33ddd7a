// Runs the syntax tree of a template.
#pragma once

#include <ctime>
#include <map>
#include <string>
#include <string_view>

#include "core/model/text/jinja/call.h"
#include "core/model/text/jinja/syntax.h"
#include "core/model/text/jinja/value.h"

namespace tierd::jinja {

// Bounds of a rendering, and the date that it may write.
struct Rendering {
  uint64_t most_steps = 50'000'000;  // about 100 ns each
  uint64_t most_bytes = uint64_t{256} << 20;
  std::tm now = {};
};

// Variables; those of `outer` are visible, unless they are set here. `outer` outlives this.
struct Scope {
  Scope* outer = nullptr;
  std::map<std::string, Value, std::less<>> variables = {};
};

struct MacroValue;

class Interpreter {
 public:
  // `heap` outlives this.
  Interpreter(Heap& heap, const std::tm& now) : heap_(heap), now_(now) {}

  // Errors have the line as their origin.
  Result<std::string> render(const Body& body, Scope& variables);

 private:
  enum class Flow : uint8_t { next, leave, skip };  // of a loop

  Result<Flow> run(const Body& body, Scope& scope, std::string& out);
  Result<Flow> run(const Statement& statement, Scope& scope, std::string& out);
  Status write(const Statement& statement, Scope& scope, std::string& out);
  Result<Flow> run_branches(const Statement& statement, Scope& scope, std::string& out);
  Result<Flow> run_loop(const Statement& statement, Scope& scope, std::string& out);
  Result<std::vector<Value>> looped_items(const Statement& statement, Scope& scope);
  Status run_block(const Statement& statement, Scope& scope);
  Status run_call(const Statement& statement, Scope& scope, std::string& out);
  Result<Flow> run_filtered(const Statement& statement, Scope& scope, std::string& out);
  Result<Flow> run_with(const Statement& statement, Scope& scope, std::string& out);
  Status assign(const Target& target, Value value, Scope& scope);
  Status append(std::string& out, std::string_view text) const;

  Result<Value> value_of(const Expression& expression, Scope& scope);
  Result<Value> compute(const Expression& expression, Scope& scope);
  Result<Value> value_of_name(const Expression& expression, const Scope& scope) const;
  Result<Value> value_of_slice(const Expression& expression, Scope& scope);
  Result<Value> value_of_items(const Expression& expression, Scope& scope);
  Result<Value> value_of_dict(const Expression& expression, Scope& scope);
  Result<Value> value_of_comparison(const Expression& expression, Scope& scope);
  Result<Value> value_of_choice(const Expression& expression, Scope& scope);
  // `base`: the value of the innermost filter of a block; NULL where the filters have a value of their own.
  Result<Value> value_of_filter(const Expression& expression, Scope& scope, const Value* base);
  Result<Arguments> values_of(const ArgumentList& list, Scope& scope);

  // `caller`: the block of {% call %}; undefined: none.
  Result<Value> call(const Expression& expression, Scope& scope, const Value& caller);
  Result<Value> call_macro(const MacroValue& macro, Arguments arguments, const Value& caller);
  Status take_parameters(const Macro& macro, Arguments& arguments, Scope& scope);
  Result<Value> call_global(std::string_view name, const Arguments& arguments);
  Result<Value> make_range(const Arguments& arguments);
  Result<Value> make_dict(const Arguments& arguments);
  Result<Value> make_namespace(const Arguments& arguments);

  // Counts a level of blocks, expressions and macros inside each other until the result is destroyed.
  struct Level {
    uint32_t& depth;
    explicit Level(uint32_t& at) : depth(at) { ++depth; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --depth; }
    Status check() const;
  };

  Heap& heap_;
  std::tm now_;
  uint32_t depth_ = 0;
};

}  // namespace tierd::jinja
