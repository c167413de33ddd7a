#include "core/model/text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/model/text/jinja/python_text.h"

namespace tierd::jinja {
namespace {

constexpr uint64_t kBytesOfItem = 64;

uint32_t depth_of(const Value& value) {
  if (const Sequence* const sequence = value.sequence()) return sequence->depth;
  const Dict* const dict = value.dict();
  return dict == nullptr ? 0 : dict->depth;
}

uint64_t saturated_sum(uint64_t a, uint64_t b) {
  return a + b < a ? UINT64_MAX : a + b;
}

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::ranges::equal(a, b, [](const Value& x, const Value& y) { return equal(x, y); });
}

Result<std::string> repr_of_items(const std::vector<Value>& items) {
  std::string out;
  for (const Value& item : items) {
    TIERD_ASSIGN(const std::string one, repr(item));
    out += (out.empty() ? "" : ", ") + one;
  }
  return out;
}

Result<std::string> repr_of_sequence(const Sequence& sequence) {
  TIERD_ASSIGN(const std::string items, repr_of_items(sequence.items));
  switch (sequence.kind) {
    case Sequence::Kind::list:
      return "[" + items + "]";
    case Sequence::Kind::tuple:
      return "(" + items + (sequence.items.size() == 1 ? ",)" : ")");
    default:
      return wrong("the text of a generator, a range or a view of a dict is not supported; expected a list");
  }
}

}  // namespace

Error wrong(std::string detail) {
  return {Code::invalid_argument, "", std::move(detail)};
}

const std::string* Value::text() const {
  const auto* const held = get<std::shared_ptr<const Text>>();
  return held == nullptr ? nullptr : &(*held)->bytes_of;
}

const Sequence* Value::sequence() const {
  const auto* const held = get<std::shared_ptr<const Sequence>>();
  return held == nullptr ? nullptr : held->get();
}

const Dict* Value::dict() const {
  const auto* const held = get<std::shared_ptr<const Dict>>();
  return held == nullptr ? nullptr : held->get();
}

Object* Value::object() const {
  const auto* const held = get<std::shared_ptr<Object>>();
  return held == nullptr ? nullptr : held->get();
}

std::optional<int64_t> Value::integer() const {
  if (const bool* const flag = get<bool>()) return *flag ? 1 : 0;
  const int64_t* const whole = get<int64_t>();
  return whole == nullptr ? std::nullopt : std::optional(*whole);
}

std::optional<double> Value::number() const {
  if (const double* const real = get<double>()) return *real;
  const auto whole = integer();
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

std::optional<std::string> Dict::key_text(const Value& key) {
  if (key.text() != nullptr) return "t" + *key.text();
  if (key.is_none()) return "none";
  if (key.is_undefined()) return "undefined";
  if (const auto whole = key.integer()) return fmt::format("n{}", *whole);
  if (const double* const real = key.get<double>()) {
    const bool whole = *real == std::floor(*real) && std::fabs(*real) < 9e15;
    return whole ? fmt::format("n{}", static_cast<int64_t>(*real)) : "n" + repr_of_double(*real);
  }
  const Sequence* const tuple = key.sequence();
  if (tuple == nullptr || tuple->kind != Sequence::Kind::tuple) return std::nullopt;
  std::string all = "(";
  for (const Value& item : tuple->items) {
    const auto one = key_text(item);
    if (!one) return std::nullopt;
    all += fmt::format("{}:{}", one->size(), *one);
  }
  return all;
}

bool Dict::set(const Value& key, Value value) {
  auto text = key_text(key);
  if (!text) return false;
  const auto [at, is_new] = indexes.emplace(std::move(*text), items.size());
  if (is_new) {
    items.emplace_back(key, std::move(value));
  } else {
    items[at->second].second = std::move(value);
  }
  return true;
}

const Value* Dict::find(const Value& key) const {
  const auto text = key_text(key);
  const auto at = text ? indexes.find(*text) : indexes.end();
  return at == indexes.end() ? nullptr : &items[at->second].second;
}

const Value* Dict::find(std::string_view key) const {
  const auto at = indexes.find("t" + std::string(key));
  return at == indexes.end() ? nullptr : &items[at->second].second;
}

std::optional<Value> Namespace::attribute(std::string_view name) const {
  const auto at = std::ranges::find(attributes, name, [](const auto& one) { return one.first; });
  return at == attributes.end() ? std::nullopt : std::optional(at->second);
}

void Namespace::set(std::string_view name, Value value) {
  const auto at = std::ranges::find(attributes, name, [](const auto& one) { return one.first; });
  if (at != attributes.end()) {
    at->second = std::move(value);
  } else {
    attributes.emplace_back(name, std::move(value));
  }
}

void Heap::count(Counted& made, uint64_t bytes) {
  made.in_use = &in_use_;
  made.bytes = bytes;
  in_use_ += bytes;
}

Value constant_text(std::string bytes) {
  auto made = std::make_shared<Text>();
  made->length = characters_in(bytes);
  made->bytes_of = std::move(bytes);
  return Value(std::shared_ptr<const Text>(std::move(made)));
}

Value Heap::text(std::string bytes, bool markup) {
  auto made = std::make_shared<Text>();
  made->length = characters_in(bytes);
  made->markup = markup;
  spend_on(bytes.size());
  count(*made, sizeof(Text) + bytes.size());
  if (bytes.size() > kLargestValue) refused_ = "a text is larger than 32 MiB";
  made->bytes_of = std::move(bytes);
  return Value(std::shared_ptr<const Text>(std::move(made)));
}

Value Heap::sequence(Sequence::Kind kind, std::vector<Value> items) {
  auto made = std::make_shared<Sequence>();
  made->kind = kind;
  for (const Value& item : items) {
    made->depth = std::max(made->depth, depth_of(item) + 1);
    made->weight = saturated_sum(made->weight, weight_of(item));
    if (item.object() != nullptr) refused_ = "a list contains a macro, a namespace or a loop";
  }
  if (made->depth > kDeepestValue) refused_ = "a list is nested deeper than 100 levels";
  if (made->weight > kLargestValue) refused_ = "a list is larger than 32 MiB";
  spend_on(items.size() * 16);
  count(*made, sizeof(Sequence) + items.size() * kBytesOfItem);
  made->items = std::move(items);
  return Value(std::shared_ptr<const Sequence>(std::move(made)));
}

Value Heap::dict(std::shared_ptr<Dict> dict) {
  for (const auto& [key, value] : dict->items) {
    dict->depth = std::max({dict->depth, depth_of(value) + 1, depth_of(key) + 1});
    dict->weight = saturated_sum(saturated_sum(dict->weight, weight_of(key)), weight_of(value));
    if (value.object() != nullptr) refused_ = "a dict contains a macro, a namespace or a loop";
  }
  if (dict->depth > kDeepestValue) refused_ = "a dict is nested deeper than 100 levels";
  if (dict->weight > kLargestValue) refused_ = "a dict is larger than 32 MiB";
  spend_on(dict->items.size() * 32);
  count(*dict, sizeof(Dict) + dict->items.size() * 4 * kBytesOfItem);
  return Value(std::shared_ptr<const Dict>(std::move(dict)));
}

Status Heap::check() const {
  if (refused_ != nullptr) return wrong(refused_);
  if (steps_left_ == 0) return wrong("the template needs more steps than are allowed");
  if (in_use_ > most_bytes_)
    return wrong(fmt::format("the template's values take more than {} bytes", most_bytes_));
  return {};
}

uint64_t weight_of(const Value& value) {
  if (value.text() != nullptr) return 16 + value.text()->size();
  if (const Sequence* const sequence = value.sequence()) return sequence->weight;
  const Dict* const dict = value.dict();
  return dict == nullptr ? 16 : dict->weight;
}

bool is_true(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (const auto number = value.number()) return *number != 0;
  if (value.text() != nullptr) return !value.text()->empty();
  if (value.dict() != nullptr) return !value.dict()->items.empty();
  const Sequence* const sequence = value.sequence();
  return sequence == nullptr || sequence->kind == Sequence::Kind::generator || !sequence->items.empty();
}

bool is_markup(const Value& value) {
  const auto* const text = value.get<std::shared_ptr<const Text>>();
  return text != nullptr && (*text)->markup;
}

bool equal(const Value& a, const Value& b) {
  if (a.get<double>() != nullptr || b.get<double>() != nullptr) {
    return a.number() && b.number() && *a.number() == *b.number();
  }
  if (a.integer() || b.integer()) return a.integer() == b.integer();
  if (a.held().index() != b.held().index()) return false;
  if (a.is_undefined() || a.is_none()) return true;
  if (a.text() != nullptr) return *a.text() == *b.text();
  if (a.object() != nullptr) return a.object() == b.object();
  if (const Sequence* const sequence = a.sequence()) {
    if (sequence == b.sequence()) return true;
    const bool comparable = sequence->kind < Sequence::Kind::view && sequence->kind == b.sequence()->kind;
    return comparable && equal_items(sequence->items, b.sequence()->items);
  }
  if (a.dict() == b.dict()) return true;
  if (a.dict()->items.size() != b.dict()->items.size()) return false;
  return std::ranges::all_of(a.dict()->items, [&](const auto& item) {
    const Value* const other = b.dict()->find(item.first);
    return other != nullptr && equal(item.second, *other);
  });
}

Result<int> compare(const Value& a, const Value& b) {
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.integer() && b.integer()) return order(*a.integer(), *b.integer());
  if (a.number() && b.number()) return order(*a.number(), *b.number());
  // The order of UTF-8 is that of the characters.
  if (a.text() != nullptr && b.text() != nullptr) return order(*a.text(), *b.text());
  const Sequence *const x = a.sequence(), *const y = b.sequence();
  const bool lists = x != nullptr && y != nullptr && x->kind == y->kind && x->kind <= Sequence::Kind::tuple;
  if (!lists) return wrong(fmt::format("{} and {} have no order", kind_of(a), kind_of(b)));
  for (size_t i = 0; i < std::min(x->items.size(), y->items.size()); ++i) {
    if (!equal(x->items[i], y->items[i])) return compare(x->items[i], y->items[i]);
  }
  return order(x->items.size(), y->items.size());
}

std::string_view kind_of(const Value& value) {
  constexpr std::string_view kNames[] = {
      "an undefined value", "none", "a bool", "an integer", "a float", "a text", "", "a dict"};
  constexpr std::string_view kSequences[] = {"a list", "a tuple", "a range", "a view of a dict",
                                             "a generator"};
  if (value.object() != nullptr)
    return dynamic_cast<Namespace*>(value.object()) != nullptr ? "a namespace" : "a function or a loop";
  if (value.sequence() != nullptr) return kSequences[static_cast<size_t>(value.sequence()->kind)];
  return kNames[value.held().index()];
}

std::string repr_of_double(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific).ptr;
  const std::string scientific(digits, end);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (exponent < -4 || exponent >= 16) return scientific;
  char plain[64];
  std::string text(plain, std::to_chars(plain, plain + sizeof plain, value, std::chars_format::fixed).ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

Result<std::string> repr(const Value& value) {
  if (value.text() != nullptr) return repr_of_text(*value.text());
  if (value.is_undefined()) return std::string("Undefined");
  return str(value);
}

Result<std::string> str(const Value& value) {
  if (value.is_undefined()) return std::string();
  if (value.is_none()) return std::string("None");
  if (const bool* const flag = value.get<bool>()) return std::string(*flag ? "True" : "False");
  if (const int64_t* const whole = value.get<int64_t>()) return std::to_string(*whole);
  if (const double* const real = value.get<double>()) return repr_of_double(*real);
  if (value.text() != nullptr) return *value.text();
  if (value.sequence() != nullptr) return repr_of_sequence(*value.sequence());
  if (value.object() != nullptr) return wrong(fmt::format("the text of {} is not supported", kind_of(value)));
  std::string out;
  for (const auto& [key, item] : value.dict()->items) {
    TIERD_ASSIGN(const std::string key_text, repr(key));
    TIERD_ASSIGN(const std::string item_text, repr(item));
    out += (out.empty() ? "" : ", ") + key_text + ": " + item_text;
  }
  return "{" + out + "}";
}

Result<std::vector<Value>> items_of(Heap& heap, const Value& value) {
  std::vector<Value> items;
  if (value.is_undefined()) return items;
  if (const std::string* const text = value.text()) {
    for (const std::string_view one : characters_of(*text)) items.push_back(heap.text(std::string(one)));
    return items;
  }
  if (const Dict* const dict = value.dict()) {
    for (const auto& [key, unused] : dict->items) items.push_back(key);
    heap.spend_on(items.size() * 16);
    return items;
  }
  const Sequence* const sequence = value.sequence();
  if (sequence == nullptr)
    return wrong(
        fmt::format("{} cannot be iterated over; expected a list, a dict or a text", kind_of(value)));
  const bool spent = std::exchange(sequence->spent, sequence->kind == Sequence::Kind::generator);
  if (!spent) items = sequence->items;
  heap.spend_on(items.size() * 16);
  return items;
}

}  // namespace tierd::jinja
