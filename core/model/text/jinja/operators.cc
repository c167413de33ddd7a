#include "core/model/text/jinja/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/utf8.h"
#include "core/model/text/jinja/methods.h"
#include "core/model/text/jinja/python_text.h"

namespace tierd::jinja {
namespace {

Error no_operation(std::string_view name, const Value& a, const Value& b) {
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  return wrong(fmt::format("'{}' is not defined for {} and {}", name, kind_of(a), kind_of(b)));
}

Error overflow() {
  return wrong("an integer is beyond 64 bits");
}

Result<int64_t> power_of(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent != 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return overflow();
    exponent >>= 1;
    if (exponent != 0 && __builtin_mul_overflow(base, base, &base)) return overflow();
  }
  return result;
}

// Integers, where the result is one.
Result<Value> operate_whole(std::string_view name, int64_t a, int64_t b) {
  int64_t result = 0;
  if (name == "+" || name == "-" || name == "*") {
    const bool beyond = name == "+"   ? __builtin_add_overflow(a, b, &result)
                        : name == "-" ? __builtin_sub_overflow(a, b, &result)
                                      : __builtin_mul_overflow(a, b, &result);
    return beyond ? Result<Value>(overflow()) : Result<Value>(Value(result));
  }
  if (name == "**") {
    if (b < 0)
      return a == 0 ? Result<Value>(wrong("0 has no negative power"))
                    : Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
    TIERD_ASSIGN(result, power_of(a, b));
    return Value(result);
  }
  if (b == 0) return wrong("a division by zero");
  if (a == INT64_MIN && b == -1) return name == "%" ? Result<Value>(Value(int64_t{0})) : overflow();
  // Python rounds down.
  const int64_t rest = a % b;
  const bool down = rest != 0 && (rest < 0) != (b < 0);
  return Value(name == "%" ? (down ? rest + b : rest) : a / b - (down ? 1 : 0));
}

Result<Value> operate_real(std::string_view name, double a, double b) {
  if (name == "+") return Value(a + b);
  if (name == "-") return Value(a - b);
  if (name == "*") return Value(a * b);
  if (name == "**") {
    const double result = std::pow(a, b);
    if (a == 0 && b < 0) return wrong("0 has no negative power");
    if (!std::isfinite(result) && std::isfinite(a) && std::isfinite(b))
      return wrong("a power that is no float");
    return Value(result);
  }
  if (b == 0) return wrong("a division by zero");
  if (name == "/") return Value(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return Value(name == "%" ? rest : std::floor((a - rest) / b + 0.5));
}

Result<Value> repeated(Heap& heap, const Value& value, int64_t times) {
  const uint64_t count = times < 0 ? 0 : static_cast<uint64_t>(times);
  const uint64_t each = weight_of(value);
  if (count > kLargestValue / each) return wrong("a repeated value is larger than 32 MiB");
  if (const std::string* const text = value.text()) {
    std::string all;
    for (uint64_t i = 0; i < count; ++i) all += *text;
    return heap.text(std::move(all), is_markup(value));
  }
  std::vector<Value> items;
  const std::vector<Value>& of = value.sequence()->items;
  for (uint64_t i = 0; i < count; ++i) items.insert(items.end(), of.begin(), of.end());
  return heap.sequence(value.sequence()->kind, std::move(items));
}

bool is_list(const Value& value) {
  return value.sequence() != nullptr && value.sequence()->kind <= Sequence::Kind::tuple;
}

Result<Value> joined_values(Heap& heap, const Value& a, const Value& b) {
  if (a.text() != nullptr && b.text() != nullptr) {
    const bool markup = is_markup(a) || is_markup(b);
    const auto part = [&](const Value& value) {
      return markup && !is_markup(value) ? html_escaped(*value.text()) : *value.text();
    };
    return heap.text(part(a) + part(b), markup);
  }
  if (!is_list(a) || !is_list(b) || a.sequence()->kind != b.sequence()->kind) return no_operation("+", a, b);
  std::vector<Value> items = a.sequence()->items;
  items.insert(items.end(), b.sequence()->items.begin(), b.sequence()->items.end());
  return heap.sequence(a.sequence()->kind, std::move(items));
}

Result<bool> contains(Heap& heap, const Value& container, const Value& value) {
  heap.spend_on(weight_of(value));
  if (const std::string* const text = container.text()) {
    if (value.text() == nullptr) return no_operation("in", value, container);
    heap.spend_on_search(text->size(), value.text()->size());
    TIERD_TRY(heap.check());
    return text->find(*value.text()) != std::string::npos;
  }
  if (container.dict() != nullptr) {
    if (!Dict::key_text(value)) return wrong(fmt::format("{} cannot be a key of a dict", kind_of(value)));
    return container.dict()->find(value) != nullptr;
  }
  if (container.is_none()) return no_operation("in", value, container);
  if (value.sequence() != nullptr || value.dict() != nullptr) heap.spend_on(weight_of(container));
  TIERD_ASSIGN(const std::vector<Value> items, items_of(heap, container));
  return std::ranges::any_of(items, [&](const Value& item) { return equal(item, value); });
}

// Returns the index of a Python index; nothing if it is out of range.
std::optional<size_t> index_in(size_t size, int64_t index) {
  const int64_t at = index < 0 ? index + static_cast<int64_t>(size) : index;
  return at < 0 || at >= static_cast<int64_t>(size) ? std::nullopt : std::optional(static_cast<size_t>(at));
}

Result<std::optional<int64_t>> bound_of(const Value& value) {
  if (value.is_none()) return std::optional<int64_t>();
  if (!value.integer())
    return wrong(fmt::format("a bound of a slice is {}, expected an integer or none", kind_of(value)));
  return value.integer();
}

// Calls take(index) for each index of a Python slice.
template <class Take>
void each_index(int64_t size, std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step,
                Take take) {
  const int64_t lowest = step < 0 ? -1 : 0, highest = step < 0 ? size - 1 : size;
  const auto limited = [&](int64_t at) {
    return std::clamp(at < 0 ? std::max<int64_t>(at, -size - 1) + size : at, lowest, highest);
  };
  const int64_t from = begin ? limited(*begin) : step < 0 ? highest : lowest;
  const int64_t to = end ? limited(*end) : step < 0 ? lowest : highest;
  const int64_t stride = std::clamp<int64_t>(step, -size - 1, size + 1);
  for (int64_t at = from; stride < 0 ? at > to : at < to; at += stride) take(static_cast<size_t>(at));
}

}  // namespace

Error undefined_error(const Value& value) {
  const std::string* const name = value.get<Undefined>()->name;
  return wrong(name == nullptr ? "a value is undefined" : fmt::format("'{}' is undefined", shown(*name)));
}

Result<Value> operate(Heap& heap, std::string_view name, const Value& a, const Value& b) {
  if (name == "~") {
    heap.spend_on(weight_of(a) + weight_of(b));
    TIERD_ASSIGN(std::string left, str(a));
    TIERD_ASSIGN(const std::string right, str(b));
    return heap.text(left + right);
  }
  if (a.integer() && b.integer() && name != "/") return operate_whole(name, *a.integer(), *b.integer());
  if (a.number() && b.number()) return operate_real(name, *a.number(), *b.number());
  if (name == "+") return joined_values(heap, a, b);
  if (name == "*") {
    if ((a.text() != nullptr || is_list(a)) && b.integer()) return repeated(heap, a, *b.integer());
    if ((b.text() != nullptr || is_list(b)) && a.integer()) return repeated(heap, b, *a.integer());
  }
  if (name == "%" && a.text() != nullptr) return formatted(heap, *a.text(), b);
  return no_operation(name, a, b);
}

Result<Value> negative(const Value& value) {
  if (const double* const real = value.get<double>()) return Value(-*real);
  if (const auto whole = value.integer()) return operate_whole("-", 0, *whole);
  if (value.is_undefined()) return undefined_error(value);
  return wrong(fmt::format("'-' is not defined for {}", kind_of(value)));
}

Result<bool> compares(Heap& heap, std::string_view name, const Value& a, const Value& b) {
  if (name == "in" || name == "not in") {
    TIERD_ASSIGN(const bool found, contains(heap, b, a));
    return found == (name == "in");
  }
  heap.spend_on(std::min(weight_of(a), weight_of(b)));
  if (name == "==" || name == "!=") return equal(a, b) == (name == "==");
  if (a.is_undefined() || b.is_undefined()) return no_operation(name, a, b);
  if (a.number() && b.number() && (std::isnan(*a.number()) || std::isnan(*b.number()))) return false;
  TIERD_ASSIGN(const int order, compare(a, b));
  return name == "<" ? order < 0 : name == "<=" ? order <= 0 : name == ">" ? order > 0 : order >= 0;
}

Result<Value> attribute_of(const Value& object, const std::string& name) {
  if (object.is_undefined()) return undefined_error(object);
  const Value missing(Undefined{&name});
  if (object.object() != nullptr) return object.object()->attribute(name).value_or(missing);
  if (has_method(object, name)) {
    auto method = std::make_shared<Method>();
    method->self = object;
    method->name = name;
    return Value(std::shared_ptr<Object>(std::move(method)));
  }
  if (object.dict() == nullptr || name.starts_with("__")) return missing;
  const Value* const found = object.dict()->find(name);
  return found == nullptr ? missing : *found;
}

Result<Value> item_of(Heap& heap, const Value& object, const Value& key) {
  if (object.is_undefined()) return undefined_error(object);
  const Sequence* const sequence = object.sequence();
  heap.spend_on(weight_of(key));
  if (object.dict() != nullptr) {
    if (const Value* const found = object.dict()->find(key)) return *found;
  } else if (sequence != nullptr && key.integer() && sequence->kind <= Sequence::Kind::range) {
    const auto at = index_in(sequence->items.size(), *key.integer());
    return at ? sequence->items[*at] : Value();
  } else if (object.text() != nullptr && key.integer()) {
    const Text& text = **object.get<std::shared_ptr<const Text>>();
    const auto at = index_in(text.length, *key.integer());
    if (!at) return Value();
    if (text.length == text.bytes_of.size()) return heap.text(text.bytes_of.substr(*at, 1));
    heap.spend_on(text.bytes_of.size() * 4);
    return heap.text(std::string(characters_of(text.bytes_of)[*at]));
  }
  if (key.text() == nullptr) return Value();
  TIERD_ASSIGN(const Value found, attribute_of(object, *key.text()));
  return found.is_undefined() ? Value() : found;
}

Result<Value> slice_of(Heap& heap, const Value& object, const Value& begin, const Value& end,
                       const Value& step) {
  TIERD_ASSIGN(const std::optional<int64_t> from, bound_of(begin));
  TIERD_ASSIGN(const std::optional<int64_t> to, bound_of(end));
  TIERD_ASSIGN(const std::optional<int64_t> stride, bound_of(step));
  if (stride == 0) return wrong("the step of a slice is 0");
  if (const std::string* const text = object.text()) {
    heap.spend_on(text->size() * 4);
    const std::vector<std::string_view> characters = characters_of(*text);
    std::string out;
    each_index(static_cast<int64_t>(characters.size()), from, to, stride.value_or(1),
               [&](size_t i) { out += characters[i]; });
    return heap.text(std::move(out));
  }
  if (object.is_undefined()) return undefined_error(object);
  if (!is_list(object))
    return wrong(fmt::format("{} has no slices; expected a list or a text", kind_of(object)));
  const std::vector<Value>& all = object.sequence()->items;
  std::vector<Value> items;
  each_index(static_cast<int64_t>(all.size()), from, to, stride.value_or(1),
             [&](size_t i) { items.push_back(all[i]); });
  return heap.sequence(object.sequence()->kind, std::move(items));
}

Result<Value> formatted(Heap& heap, const std::string& form, const Value& values) {
  const Sequence* const sequence = values.sequence();
  const bool several = sequence != nullptr && sequence->kind == Sequence::Kind::tuple;
  const std::vector<Value> all = several ? sequence->items : std::vector<Value>{values};
  size_t used = 0;
  std::string out;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%') {
      out += form[i];
      continue;
    }
    const char kind = i + 1 < form.size() ? form[++i] : '\0';
    if (kind == '%') {
      out += '%';
      continue;
    }
    if (std::string_view("srdif").find(kind) == std::string_view::npos || kind == '\0')
      return wrong("a format with other marks than %s, %r, %d, %i, %f and %% is not supported");
    if (used == all.size()) return wrong("a format has more marks than values");
    const Value& value = all[used++];
    if (kind == 's' || kind == 'r') {
      TIERD_ASSIGN(const std::string text, kind == 's' ? str(value) : repr(value));
      out += text;
    } else if (const auto number = value.number(); !number || std::fabs(*number) > 1e15) {
      return wrong(fmt::format("%{} of {} that is no number below 1e15", kind, kind_of(value)));
    } else {
      out += kind == 'f' ? fmt::format("{:f}", *number) : std::to_string(static_cast<int64_t>(*number));
    }
    if (out.size() > kLargestValue) return wrong("a text is larger than 32 MiB");
  }
  if (used != all.size() && (several || (values.dict() == nullptr && sequence == nullptr)))
    return wrong("a format has fewer marks than values");
  return heap.text(std::move(out));
}

}  // namespace tierd::jinja
