#include "core/model/text/jinja/tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/utf8.h"
#include "core/model/text/jinja/filters.h"
#include "core/model/text/jinja/operators.h"

namespace tierd::jinja {
namespace {

using RunTest = Result<bool> (*)(Heap&, const Value&, const Bound&);

struct NamedTest {
  std::string_view name;
  RunTest run;
  bool has_argument = false;
};

template <bool (*holds)(const Value&)>
Result<bool> simple(Heap&, const Value& value, const Bound&) {
  return holds(value);
}

// The operator's other side is the argument.
template <char first, char second = '\0'>
Result<bool> compared(Heap& heap, const Value& value, const Bound& bound) {
  constexpr char kName[] = {first, second, '\0'};
  return compares(heap, kName, value, *bound[0]);
}

bool is_defined(const Value& value) {
  return !value.is_undefined();
}
bool is_undefined(const Value& value) {
  return value.is_undefined();
}
bool is_none(const Value& value) {
  return value.is_none();
}
bool is_boolean(const Value& value) {
  return value.has<bool>();
}
bool is_number(const Value& value) {
  return value.number().has_value();
}
bool is_integer(const Value& value) {
  return value.has<int64_t>();
}
bool is_float(const Value& value) {
  return value.has<double>();
}
bool is_text(const Value& value) {
  return value.text() != nullptr;
}
bool is_mapping(const Value& value) {
  return value.dict() != nullptr;
}
bool is_iterable(const Value& value) {
  return is_text(value) || is_mapping(value) || value.sequence() != nullptr || value.is_undefined();
}
bool is_sequence(const Value& value) {
  return is_iterable(value) &&
         (value.sequence() == nullptr || value.sequence()->kind <= Sequence::Kind::range);
}
bool is_callable(const Value& value) {
  return value.object() != nullptr && dynamic_cast<Namespace*>(value.object()) == nullptr;
}
bool is_exactly_true(const Value& value) {
  return value.has<bool>() && *value.get<bool>();
}
bool is_exactly_false(const Value& value) {
  return value.has<bool>() && !*value.get<bool>();
}
template <bool odd>
Result<bool> parity(Heap& heap, const Value& value, const Bound&) {
  TIERD_ASSIGN(const Value rest, operate(heap, "%", value, Value(int64_t{2})));
  return equal(rest, Value(int64_t{odd ? 1 : 0}));
}

Result<bool> is_divisible(Heap& heap, const Value& value, const Bound& bound) {
  TIERD_ASSIGN(const Value rest, operate(heap, "%", value, *bound[0]));
  return equal(rest, Value(int64_t{0}));
}

template <char other>
Result<bool> has_no_case(Heap&, const Value& value, const Bound&) {
  TIERD_ASSIGN(const std::string text, str(value));
  bool cased = false, all = true;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80)
      return wrong("the case of a text that is not ASCII is not supported");
    const bool low = c >= 'a' && c <= 'z', high = c >= 'A' && c <= 'Z';
    cased |= low || high;
    all &= other == 'A' ? !high : !low;
  }
  return cased && all;
}

Result<bool> is_in(Heap& heap, const Value& value, const Bound& bound) {
  return compares(heap, "in", value, *bound[0]);
}

Result<bool> is_same(Heap&, const Value& value, const Bound& bound) {
  const Value& other = *bound[0];
  if (value.held().index() != other.held().index()) return false;
  if (value.sequence() != nullptr) return value.sequence() == other.sequence();
  if (value.dict() != nullptr) return value.dict() == other.dict();
  return equal(value, other);
}

Result<bool> names_filter(Heap&, const Value& value, const Bound&) {
  return value.text() != nullptr && is_filter(*value.text());
}
Result<bool> names_test(Heap&, const Value& value, const Bound&) {
  return value.text() != nullptr && is_test(*value.text());
}

constexpr auto kTests = std::to_array<NamedTest>({{"!=", compared<'!', '='>, true},
                                                  {"<", compared<'<'>, true},
                                                  {"<=", compared<'<', '='>, true},
                                                  {"==", compared<'=', '='>, true},
                                                  {">", compared<'>'>, true},
                                                  {">=", compared<'>', '='>, true},
                                                  {"boolean", simple<is_boolean>},
                                                  {"callable", simple<is_callable>},
                                                  {"defined", simple<is_defined>},
                                                  {"divisibleby", is_divisible, true},
                                                  {"eq", compared<'=', '='>, true},
                                                  {"equalto", compared<'=', '='>, true},
                                                  {"escaped", simple<is_markup>},
                                                  {"even", parity<false>},
                                                  {"false", simple<is_exactly_false>},
                                                  {"filter", names_filter},
                                                  {"float", simple<is_float>},
                                                  {"ge", compared<'>', '='>, true},
                                                  {"greaterthan", compared<'>'>, true},
                                                  {"gt", compared<'>'>, true},
                                                  {"in", is_in, true},
                                                  {"integer", simple<is_integer>},
                                                  {"iterable", simple<is_iterable>},
                                                  {"le", compared<'<', '='>, true},
                                                  {"lessthan", compared<'<'>, true},
                                                  {"lower", has_no_case<'A'>},
                                                  {"lt", compared<'<'>, true},
                                                  {"mapping", simple<is_mapping>},
                                                  {"ne", compared<'!', '='>, true},
                                                  {"none", simple<is_none>},
                                                  {"number", simple<is_number>},
                                                  {"odd", parity<true>},
                                                  {"sameas", is_same, true},
                                                  {"sequence", simple<is_sequence>},
                                                  {"string", simple<is_text>},
                                                  {"test", names_test},
                                                  {"true", simple<is_exactly_true>},
                                                  {"undefined", simple<is_undefined>},
                                                  {"upper", has_no_case<'a'>}});

const NamedTest* find_test(std::string_view name) {
  const auto at = std::ranges::find(kTests, name, &NamedTest::name);
  return at == kTests.end() ? nullptr : &*at;
}

}  // namespace

bool is_test(std::string_view name) {
  return find_test(name) != nullptr;
}

Result<bool> apply_test(Heap& heap, const std::string& name, const Value& value, const Arguments& arguments) {
  const NamedTest* const test = find_test(name);
  if (test == nullptr)
    return Error{Code::unsupported, "", fmt::format("the test '{}' is not supported", shown(name))};
  if (!test->has_argument) {
    TIERD_ASSIGN(const Bound none, Bound::bind(name, arguments, {}));
    return test->run(heap, value, none);
  }
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"other"}, 1));
  return test->run(heap, value, bound);
}

}  // namespace tierd::jinja
