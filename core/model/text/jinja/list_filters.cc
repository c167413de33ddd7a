// Filters of lists and dicts.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/utf8.h"
#include "core/model/text/jinja/filter_table.h"
#include "core/model/text/jinja/filters.h"
#include "core/model/text/jinja/operators.h"
#include "core/model/text/jinja/python_text.h"
#include "core/model/text/jinja/tests.h"

namespace tierd::jinja {
namespace {

constexpr auto kGenerator = Sequence::Kind::generator;

// Returns the attribute "a.0.b" of a value.
Result<Value> attribute_by_path(Heap& heap, const Value& value, const Value& path) {
  if (path.integer()) return item_of(heap, value, path);
  if (path.text() == nullptr) return wrong(fmt::format("an attribute is {}, expected a text", kind_of(path)));
  const std::string dot = ".";
  Value found = value;
  for (const std::string_view part : split(*path.text(), &dot, -1)) {
    const bool digits =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string_view::npos;
    const Value key =
        digits ? Value(static_cast<int64_t>(std::stol(std::string(part)))) : heap.text(std::string(part));
    TIERD_ASSIGN(found, item_of(heap, found, key));
  }
  return found;
}

// Returns what values are sorted and compared by: an attribute, and texts without case unless it counts.
Result<Value> key_of(Heap& heap, const Value& value, const Value* attribute, bool case_sensitive) {
  Value key = value;
  if (attribute != nullptr && !attribute->is_none()) {
    TIERD_ASSIGN(key, attribute_by_path(heap, value, *attribute));
  }
  if (case_sensitive || key.text() == nullptr) return key;
  TIERD_ASSIGN(std::string folded, lower(*key.text()));
  return heap.text(std::move(folded));
}

struct Keyed {
  Value key;
  Value value;
};

Result<std::vector<Keyed>> keyed(Heap& heap, const Value& value, const Value* attribute,
                                 bool case_sensitive) {
  TIERD_ASSIGN(const std::vector<Value> items, items_of(heap, value));
  std::vector<Keyed> all;
  for (const Value& item : items) {
    TIERD_ASSIGN(Value key, key_of(heap, item, attribute, case_sensitive));
    all.push_back({std::move(key), item});
  }
  heap.spend_on(weight_of(value) * 8);
  return all;
}

Status sort_by_key(std::vector<Keyed>& all, bool reverse) {
  Status status;
  std::ranges::stable_sort(all, [&](const Keyed& a, const Keyed& b) {
    const auto order = reverse ? compare(b.key, a.key) : compare(a.key, b.key);
    if (!order.ok()) status = order.error();
    return order.ok() && *order < 0;
  });
  return status;
}

std::vector<Value> values_of(std::vector<Keyed> all) {
  std::vector<Value> values;
  for (Keyed& one : all) values.push_back(std::move(one.value));
  return values;
}

Result<Value> length_filter(Heap&, const std::string& name, const Value& value, const Arguments& arguments) {
  TIERD_TRY(Bound::bind(name, arguments, {}));
  const auto* const text = value.get<std::shared_ptr<const Text>>();
  const Sequence* const sequence = value.sequence();
  if (value.is_undefined()) return Value(int64_t{0});
  if (text != nullptr) return Value(static_cast<int64_t>((*text)->length));
  if (value.dict() != nullptr) return Value(static_cast<int64_t>(value.dict()->items.size()));
  if (sequence == nullptr || sequence->kind == kGenerator)
    return wrong(fmt::format("{} has no length", kind_of(value)));
  return Value(static_cast<int64_t>(sequence->items.size()));
}

Result<Value> first_filter(Heap& heap, const std::string& name, const Value& value,
                           const Arguments& arguments) {
  TIERD_TRY(Bound::bind(name, arguments, {}));
  if (name == "last" && value.sequence() != nullptr && value.sequence()->kind == kGenerator)
    return wrong("last of a generator, expected a list");
  TIERD_ASSIGN(const std::vector<Value> items, items_of(heap, value));
  return items.empty() ? Value() : name == "first" ? items.front() : items.back();
}

Result<Value> list_filter(Heap& heap, const std::string& name, const Value& value,
                          const Arguments& arguments) {
  TIERD_TRY(Bound::bind(name, arguments, {}));
  TIERD_ASSIGN(std::vector<Value> items, items_of(heap, value));
  return heap.list(std::move(items));
}

Result<Value> join_filter(Heap& heap, const std::string& name, const Value& value,
                          const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"d", "attribute"}));
  TIERD_ASSIGN(const std::string between,
               bound[0] == nullptr ? Result<std::string>(std::string()) : str(*bound[0]));
  TIERD_ASSIGN(const std::vector<Value> items, items_of(heap, value));
  std::string out;
  bool begins = true;
  for (const Value& item : items) {
    const bool whole = bound[1] == nullptr || bound[1]->is_none();
    TIERD_ASSIGN(const Value part, whole ? Result<Value>(item) : attribute_by_path(heap, item, *bound[1]));
    TIERD_ASSIGN(const std::string text, str(part));
    out += (begins ? "" : between) + text;
    begins = false;
    if (out.size() > kLargestValue) return wrong("a text is larger than 32 MiB");
  }
  return heap.text(std::move(out));
}

Result<Value> reverse_filter(Heap& heap, const std::string& name, const Value& value,
                             const Arguments& arguments) {
  TIERD_TRY(Bound::bind(name, arguments, {}));
  TIERD_ASSIGN(std::vector<Value> items, items_of(heap, value));
  std::ranges::reverse(items);
  if (value.text() == nullptr) return heap.sequence(kGenerator, std::move(items));
  std::string out;
  for (const Value& item : items) out += *item.text();
  return heap.text(std::move(out));
}

Result<Value> items_filter(Heap& heap, const std::string& name, const Value& value,
                           const Arguments& arguments) {
  TIERD_TRY(Bound::bind(name, arguments, {}));
  std::vector<Value> pairs;
  if (value.dict() == nullptr && !value.is_undefined())
    return wrong(fmt::format("items of {}, expected a dict", kind_of(value)));
  if (value.dict() != nullptr) {
    for (const auto& [key, item] : value.dict()->items)
      pairs.push_back(heap.sequence(Sequence::Kind::tuple, {key, item}));
  }
  return heap.sequence(kGenerator, std::move(pairs));
}

Result<Value> dictsort_filter(Heap& heap, const std::string& name, const Value& value,
                              const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"case_sensitive", "by", "reverse"}));
  TIERD_ASSIGN(const std::string by, bound.text(1, "key"));
  if (by != "key" && by != "value") return wrong("dictsort is by neither key nor value");
  if (value.is_undefined()) return undefined_error(value);
  if (value.dict() == nullptr) return wrong(fmt::format("dictsort of {}, expected a dict", kind_of(value)));
  const Value at(int64_t{by == "key" ? 0 : 1});
  TIERD_ASSIGN(const Value pairs, items_filter(heap, name, value, {}));
  TIERD_ASSIGN(std::vector<Keyed> all, keyed(heap, pairs, &at, bound.flag(0, false)));
  TIERD_TRY(sort_by_key(all, bound.flag(2, false)));
  return heap.list(values_of(std::move(all)));
}

Result<Value> sort_filter(Heap& heap, const std::string& name, const Value& value,
                          const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"reverse", "case_sensitive", "attribute"}));
  if (bound[2] != nullptr && bound[2]->text() != nullptr && bound[2]->text()->find(',') != std::string::npos)
    return wrong("sort by several attributes is not supported");
  TIERD_ASSIGN(std::vector<Keyed> all, keyed(heap, value, bound[2], bound.flag(1, false)));
  // A key of an attribute is a list, whose equal items need no order.
  if (bound[2] != nullptr && !bound[2]->is_none()) {
    for (Keyed& one : all) one.key = heap.list({one.key});
  }
  TIERD_TRY(sort_by_key(all, bound.flag(0, false)));
  return heap.list(values_of(std::move(all)));
}

Result<Value> unique_filter(Heap& heap, const std::string& name, const Value& value,
                            const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"case_sensitive", "attribute"}));
  TIERD_ASSIGN(const std::vector<Keyed> all, keyed(heap, value, bound[1], bound.flag(0, false)));
  Dict seen;
  std::vector<Value> kept;
  for (const Keyed& one : all) {
    const size_t before = seen.items.size();
    if (!seen.set(one.key, Value(None()))) return wrong(fmt::format("unique of {}", kind_of(one.key)));
    if (seen.items.size() != before) kept.push_back(one.value);
  }
  return heap.sequence(kGenerator, std::move(kept));
}

// min and max: the first of those that are equal.
Result<Value> extreme_filter(Heap& heap, const std::string& name, const Value& value,
                             const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"case_sensitive", "attribute"}));
  TIERD_ASSIGN(const std::vector<Keyed> all, keyed(heap, value, bound[1], bound.flag(0, false)));
  const Keyed* best = nullptr;
  for (const Keyed& one : all) {
    if (best != nullptr) {
      TIERD_ASSIGN(const int order, compare(one.key, best->key));
      if (name == "min" ? order >= 0 : order <= 0) continue;
    }
    best = &one;
  }
  return best == nullptr ? Value() : best->value;
}

Result<Value> sum_filter(Heap& heap, const std::string& name, const Value& value,
                         const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"attribute", "start"}));
  TIERD_ASSIGN(const std::vector<Keyed> all, keyed(heap, value, bound[0], true));
  Value total = bound[1] == nullptr ? Value(int64_t{0}) : *bound[1];
  if (total.text() != nullptr) return wrong("sum of texts, expected join");
  for (const Keyed& one : all) {
    TIERD_ASSIGN(total, operate(heap, "+", total, one.key));
    TIERD_TRY(heap.check());
  }
  return total;
}

Result<Value> batch_filter(Heap& heap, const std::string& name, const Value& value,
                           const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"linecount", "fill_with"}, 1));
  TIERD_ASSIGN(const int64_t count, bound.integer(0, 0));
  if (count < 1 || count > static_cast<int64_t>(kMostItems))
    return wrong(fmt::format("batch of {}, expected 1 to {}", count, kMostItems));
  TIERD_ASSIGN(const std::vector<Value> all, items_of(heap, value));
  std::vector<Value> batches, open;
  for (const Value& item : all) {
    open.push_back(item);
    if (open.size() == static_cast<size_t>(count)) batches.push_back(heap.list(std::exchange(open, {})));
  }
  const bool fills = bound[1] != nullptr && !bound[1]->is_none();
  if (!open.empty() && fills) open.resize(static_cast<size_t>(count), *bound[1]);
  if (!open.empty()) batches.push_back(heap.list(std::move(open)));
  return heap.sequence(kGenerator, std::move(batches));
}

// map(attribute="a", default=b), or map("filter", arguments…).
Result<Value> map_filter(Heap& heap, const std::string& name, const Value& value,
                         const Arguments& arguments) {
  if (!is_true(value)) return heap.sequence(kGenerator, {});
  TIERD_ASSIGN(const std::vector<Value> all, items_of(heap, value));
  std::vector<Value> mapped;
  if (arguments.values.empty()) {
    TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"attribute", "default"}, 1));
    for (const Value& item : all) {
      TIERD_ASSIGN(Value found, attribute_by_path(heap, item, *bound[0]));
      mapped.push_back(found.is_undefined() && bound[1] != nullptr ? *bound[1] : std::move(found));
    }
    return heap.sequence(kGenerator, std::move(mapped));
  }
  if (arguments.values[0].text() == nullptr)
    return wrong("the first argument of map is no text, expected the name of a filter");
  const Arguments rest{{arguments.values.begin() + 1, arguments.values.end()}, arguments.named};
  for (const Value& item : all) {
    TIERD_ASSIGN(mapped.emplace_back(), apply_filter(heap, *arguments.values[0].text(), item, rest));
  }
  return heap.sequence(kGenerator, std::move(mapped));
}

// select, reject, selectattr("attribute") and rejectattr: by a test with arguments, or by truth.
Result<Value> select_filter(Heap& heap, const std::string& name, const Value& value,
                            const Arguments& arguments) {
  const bool by_attribute = name.ends_with("attr");
  const size_t test = by_attribute ? 1 : 0;
  if (arguments.values.size() < test) return wrong(fmt::format("{} lacks the name of an attribute", name));
  if (!is_true(value)) return heap.sequence(kGenerator, {});
  TIERD_ASSIGN(const std::vector<Value> all, items_of(heap, value));
  const bool tests = arguments.values.size() > test;
  if (tests && arguments.values[test].text() == nullptr)
    return wrong(fmt::format("{} lacks the name of a test", name));
  Arguments rest;
  if (tests)
    rest = {{arguments.values.begin() + static_cast<ptrdiff_t>(test) + 1, arguments.values.end()},
            arguments.named};
  std::vector<Value> kept;
  for (const Value& item : all) {
    TIERD_ASSIGN(const Value tested,
                 by_attribute ? attribute_by_path(heap, item, arguments.values[0]) : Result<Value>(item));
    TIERD_ASSIGN(const bool holds, tests ? apply_test(heap, *arguments.values[test].text(), tested, rest)
                                         : Result<bool>(is_true(tested)));
    if (holds == name.starts_with("select")) kept.push_back(item);
    TIERD_TRY(heap.check());
  }
  return heap.sequence(kGenerator, std::move(kept));
}

constexpr auto kListFilters = std::to_array<NamedFilter>(
    {{"batch", batch_filter},   {"count", length_filter},      {"dictsort", dictsort_filter},
     {"first", first_filter},   {"items", items_filter},       {"join", join_filter},
     {"last", first_filter},    {"length", length_filter},     {"list", list_filter},
     {"map", map_filter},       {"max", extreme_filter},       {"min", extreme_filter},
     {"reject", select_filter}, {"rejectattr", select_filter}, {"reverse", reverse_filter},
     {"select", select_filter}, {"selectattr", select_filter}, {"sort", sort_filter},
     {"sum", sum_filter},       {"unique", unique_filter}});

const NamedFilter* find_filter(std::string_view name) {
  for (const std::span<const NamedFilter> group : {text_filters(), list_filters()}) {
    const auto at = std::ranges::find(group, name, &NamedFilter::name);
    if (at != group.end()) return &*at;
  }
  return nullptr;
}

}  // namespace

std::span<const NamedFilter> list_filters() {
  return kListFilters;
}

bool is_filter(std::string_view name) {
  return find_filter(name) != nullptr;
}

Result<Value> apply_filter(Heap& heap, const std::string& name, const Value& value,
                           const Arguments& arguments) {
  const NamedFilter* const filter = find_filter(name);
  if (filter == nullptr)
    return Error{Code::unsupported, "", fmt::format("the filter '{}' is not supported", shown(name))};
  const uint64_t size = value.text() != nullptr ? value.text()->size() : 16;
  heap.spend_on_search(size, 0);
  for (const Value& argument : arguments.values) {
    if (argument.text() != nullptr) heap.spend_on_search(size, argument.text()->size());
  }
  if (filter->name == "tojson" || filter->name == "string") heap.spend_on(weight_of(value) * 4);
  TIERD_TRY(heap.check());
  TIERD_ASSIGN(Value result, filter->run(heap, name, value, arguments));
  TIERD_TRY(heap.check());
  return result;
}

}  // namespace tierd::jinja
