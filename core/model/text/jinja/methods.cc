#include "core/model/text/jinja/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/utf8.h"
#include "core/model/text/jinja/python_text.h"

namespace tierd::jinja {
namespace {

using CallMethod = Result<Value> (*)(Heap&, const Value& self, const std::string& name, const Arguments&);

struct NamedMethod {
  std::string_view name;
  CallMethod call;
};

const std::string& text_of(const Value& self) {
  return *self.text();
}
Value texts(Heap& heap, const std::vector<std::string_view>& parts,
            Sequence::Kind kind = Sequence::Kind::list) {
  std::vector<Value> items;
  for (const std::string_view part : parts) items.push_back(heap.text(std::string(part)));
  return heap.sequence(kind, std::move(items));
}

Result<Value> strip_method(Heap& heap, const Value& self, const std::string& name,
                           const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"chars"}));
  TIERD_ASSIGN(const std::optional<std::string> chars, bound.text_or_none(0));
  const Side side = name == "lstrip" ? Side::left : name == "rstrip" ? Side::right : Side::both;
  return heap.text(std::string(stripped(text_of(self), side, chars)), is_markup(self));
}

Result<Value> split_text_method(Heap& heap, const Value& self, const std::string& name,
                                const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"sep", "maxsplit"}));
  TIERD_ASSIGN(const std::optional<std::string> separator, bound.text_or_none(0));
  TIERD_ASSIGN(const int64_t most, bound.integer(1, -1));
  if (separator && separator->empty()) return wrong(fmt::format("the separator of {} is empty", name));
  const std::string* const by = separator ? &*separator : nullptr;
  return texts(heap, name == "split" ? split(text_of(self), by, most) : rsplit(text_of(self), by, most));
}

Result<Value> partition_method(Heap& heap, const Value& self, const std::string& name,
                               const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"sep"}, 1));
  TIERD_ASSIGN(const std::string separator, bound.text(0, ""));
  if (separator.empty()) return wrong(fmt::format("the separator of {} is empty", name));
  const std::string_view text = text_of(self);
  const bool first = name == "partition";
  const size_t at = first ? text.find(separator) : text.rfind(separator);
  const auto tuple = Sequence::Kind::tuple;
  if (at == std::string_view::npos && first) return texts(heap, {text, "", ""}, tuple);
  if (at == std::string_view::npos) return texts(heap, {"", "", text}, tuple);
  return texts(heap, {text.substr(0, at), separator, text.substr(at + separator.size())}, tuple);
}

Result<Value> change_case_method(Heap& heap, const Value& self, const std::string& name,
                                 const Arguments& arguments) {
  TIERD_TRY(Bound::bind(name, arguments, {}));
  const std::string& text = text_of(self);
  TIERD_ASSIGN(std::string changed, name == "upper"   ? upper(text)
                                    : name == "title" ? titled(text)
                                    : name == "lower" ? lower(text)
                                                      : capitalized(text));
  return heap.text(std::move(changed), is_markup(self));
}

// Whether a text begins or ends with another, or with one of a tuple.
Result<Value> affix_method(Heap&, const Value& self, const std::string& name, const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"affix"}, 1));
  const Sequence* const several = bound[0]->sequence();
  const std::vector<Value> all = several != nullptr && several->kind == Sequence::Kind::tuple
                                     ? several->items
                                     : std::vector<Value>{*bound[0]};
  bool found = false;
  for (const Value& one : all) {
    if (one.text() == nullptr) return wrong(fmt::format("{} of {}, expected a text", name, kind_of(one)));
    found |=
        name == "startswith" ? text_of(self).starts_with(*one.text()) : text_of(self).ends_with(*one.text());
  }
  return Value(found);
}

Result<Value> remove_affix_method(Heap& heap, const Value& self, const std::string& name,
                                  const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"affix"}, 1));
  TIERD_ASSIGN(const std::string affix, bound.text(0, ""));
  const std::string& text = text_of(self);
  if (name == "removeprefix") return heap.text(text.starts_with(affix) ? text.substr(affix.size()) : text);
  return heap.text(text.ends_with(affix) ? text.substr(0, text.size() - affix.size()) : text);
}

Result<Value> replace_method(Heap& heap, const Value& self, const std::string& name,
                             const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"old", "new", "count"}, 2));
  TIERD_ASSIGN(const std::string from, bound.text(0, ""));
  TIERD_ASSIGN(const std::string to, bound.text(1, ""));
  TIERD_ASSIGN(const int64_t most, bound.integer(2, -1));
  TIERD_ASSIGN(std::string text, replaced(text_of(self), from, to, most));
  return heap.text(std::move(text), is_markup(self));
}

Result<Value> find_method(Heap&, const Value& self, const std::string& name, const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"sub"}, 1));
  TIERD_ASSIGN(const std::string sub, bound.text(0, ""));
  const std::string_view text = text_of(self);
  const size_t at = name.starts_with('r') ? text.rfind(sub) : text.find(sub);
  if (at != std::string_view::npos) return Value(static_cast<int64_t>(characters_in(text.substr(0, at))));
  if (name.ends_with("index")) return wrong(fmt::format("the text does not contain '{}'", shown(sub)));
  return Value(int64_t{-1});
}

Result<Value> count_text_method(Heap&, const Value& self, const std::string& name,
                                const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"sub"}, 1));
  TIERD_ASSIGN(const std::string sub, bound.text(0, ""));
  if (sub.empty()) return Value(static_cast<int64_t>(characters_in(text_of(self)) + 1));
  return Value(static_cast<int64_t>(split(text_of(self), &sub, -1).size() - 1));
}

Result<Value> join_method(Heap& heap, const Value& self, const std::string& name,
                          const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"iterable"}, 1));
  TIERD_ASSIGN(const std::vector<Value> items, items_of(heap, *bound[0]));
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].text() == nullptr)
      return wrong(fmt::format("join of {}, expected texts", kind_of(items[i])));
    out += (i == 0 ? "" : text_of(self)) + *items[i].text();
    if (out.size() > kLargestValue) return wrong("a text is larger than 32 MiB");
  }
  return heap.text(std::move(out));
}

Result<Value> split_lines_method(Heap& heap, const Value& self, const std::string& name,
                                 const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"keepends"}));
  return texts(heap, lines_of(text_of(self), bound.flag(0, false)));
}

// Appends the value that a field of format() names: "", "0" or "name".
Status append_field(const std::string& field, const Arguments& arguments, size_t& next, std::string& out) {
  const bool digits =
      !field.empty() && field.size() < 4 && field.find_first_not_of("0123456789") == std::string::npos;
  const Value* value = nullptr;
  if (field.empty() || digits) {
    const size_t at = digits ? std::stoul(field) : next++;
    if (at < arguments.values.size()) value = &arguments.values[at];
  } else {
    for (const auto& [name, named] : arguments.named) {
      if (name == field) value = &named;
    }
  }
  if (value == nullptr) return wrong(fmt::format("format has no value for the field '{{{}}}'", shown(field)));
  TIERD_ASSIGN(const std::string text, str(*value));
  out += text;
  return out.size() > kLargestValue ? Status(wrong("a text is larger than 32 MiB")) : Status();
}

// Fields with a conversion, a format or an attribute are refused.
Result<Value> format_method(Heap& heap, const Value& self, const std::string&, const Arguments& arguments) {
  const std::string& form = text_of(self);
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '{' && form[i] != '}') {
      out += form[i];
    } else if (i + 1 < form.size() && form[i + 1] == form[i]) {
      out += form[i++];
    } else {
      const size_t end = form.find('}', i);
      if (form[i] == '}' || end == std::string::npos) return wrong("the form of format has a single brace");
      const std::string field = form.substr(i + 1, end - i - 1);
      if (field.find_first_of("!:.[{") != std::string::npos)
        return wrong(fmt::format("the field '{{{}}}' of format is not supported, expected a number or a name",
                                 shown(field)));
      TIERD_TRY(append_field(field, arguments, next, out));
      i = end;
    }
  }
  return heap.text(std::move(out));
}

Result<Value> pad_method(Heap& heap, const Value& self, const std::string& name, const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"width", "fillchar"}, 1));
  TIERD_ASSIGN(const int64_t width, bound.integer(0, 0));
  TIERD_ASSIGN(const std::string fill, bound.text(1, name == "zfill" ? "0" : " "));
  if (characters_in(fill) != 1 || width > static_cast<int64_t>(kMostItems))
    return wrong(
        fmt::format("{} expects one character to fill with and a width of at most {}", name, kMostItems));
  std::string text = text_of(self);
  const int64_t lacking = width - static_cast<int64_t>(characters_in(text));
  for (int64_t i = 0; i < lacking; ++i) {
    if (name == "ljust") text += fill;
    if (name == "rjust") text.insert(0, fill);
    if (name == "zfill") text.insert(text.starts_with('-') || text.starts_with('+') ? 1 : 0, fill);
  }
  return heap.text(std::move(text));
}

// Python's classes of characters, for ASCII alone.
Result<Value> is_of_class_method(Heap&, const Value& self, const std::string& name,
                                 const Arguments& arguments) {
  TIERD_TRY(Bound::bind(name, arguments, {}));
  const std::string& text = text_of(self);
  bool all = !text.empty(), cased = false;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80)
      return wrong(fmt::format("{} of a text that is not ASCII is not supported", name));
    const bool digit = c >= '0' && c <= '9', low = c >= 'a' && c <= 'z', high = c >= 'A' && c <= 'Z';
    cased |= low || high;
    if (name == "isdigit") all &= digit;
    if (name == "isalpha") all &= low || high;
    if (name == "isalnum") all &= digit || low || high;
    if (name == "isspace") all &= is_space(std::string_view(&c, 1));
    if (name == "islower") all &= !high;
    if (name == "isupper") all &= !low;
  }
  return Value(all && (cased || (name != "islower" && name != "isupper")));
}

constexpr auto kOfText = std::to_array<NamedMethod>({{"capitalize", change_case_method},
                                                     {"count", count_text_method},
                                                     {"endswith", affix_method},
                                                     {"find", find_method},
                                                     {"format", format_method},
                                                     {"index", find_method},
                                                     {"isalnum", is_of_class_method},
                                                     {"isalpha", is_of_class_method},
                                                     {"isdigit", is_of_class_method},
                                                     {"islower", is_of_class_method},
                                                     {"isspace", is_of_class_method},
                                                     {"isupper", is_of_class_method},
                                                     {"join", join_method},
                                                     {"ljust", pad_method},
                                                     {"lower", change_case_method},
                                                     {"lstrip", strip_method},
                                                     {"partition", partition_method},
                                                     {"removeprefix", remove_affix_method},
                                                     {"removesuffix", remove_affix_method},
                                                     {"replace", replace_method},
                                                     {"rfind", find_method},
                                                     {"rindex", find_method},
                                                     {"rjust", pad_method},
                                                     {"rpartition", partition_method},
                                                     {"rsplit", split_text_method},
                                                     {"rstrip", strip_method},
                                                     {"split", split_text_method},
                                                     {"splitlines", split_lines_method},
                                                     {"startswith", affix_method},
                                                     {"strip", strip_method},
                                                     {"title", change_case_method},
                                                     {"upper", change_case_method},
                                                     {"zfill", pad_method}});

Result<Value> get_method(Heap&, const Value& self, const std::string& name, const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"key", "default"}, 1));
  if (!Dict::key_text(*bound[0]))
    return wrong(fmt::format("{} cannot be a key of a dict", kind_of(*bound[0])));
  const Value* const found = self.dict()->find(*bound[0]);
  return found != nullptr ? *found : bound[1] != nullptr ? *bound[1] : Value(None());
}

// keys(), values() and items().
Result<Value> view_method(Heap& heap, const Value& self, const std::string& name,
                          const Arguments& arguments) {
  TIERD_TRY(Bound::bind(name, arguments, {}));
  std::vector<Value> items;
  for (const auto& [key, value] : self.dict()->items) {
    items.push_back(name == "keys"     ? key
                    : name == "values" ? value
                                       : heap.sequence(Sequence::Kind::tuple, {key, value}));
  }
  return heap.sequence(Sequence::Kind::view, std::move(items));
}

Result<Value> copy_method(Heap&, const Value& self, const std::string& name, const Arguments& arguments) {
  TIERD_TRY(Bound::bind(name, arguments, {}));
  return self;
}

constexpr auto kOfDict = std::to_array<NamedMethod>({{"copy", copy_method},
                                                     {"get", get_method},
                                                     {"items", view_method},
                                                     {"keys", view_method},
                                                     {"values", view_method}});

Result<Value> look_up_method(Heap& heap, const Value& self, const std::string& name,
                             const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"value"}, 1));
  const std::vector<Value>& items = self.sequence()->items;
  heap.spend_on(weight_of(self));
  const auto is_it = [&](const Value& item) { return equal(item, *bound[0]); };
  if (name == "count") return Value(static_cast<int64_t>(std::ranges::count_if(items, is_it)));
  const auto at = std::ranges::find_if(items, is_it);
  if (at == items.end()) return wrong("the list does not contain the value of index()");
  return Value(static_cast<int64_t>(at - items.begin()));
}

constexpr auto kOfList =
    std::to_array<NamedMethod>({{"copy", copy_method}, {"count", look_up_method}, {"index", look_up_method}});

const NamedMethod* find_method(const Value& value, std::string_view name) {
  const auto in = [&](const auto& all) -> const NamedMethod* {
    const auto at = std::ranges::find(all, name, &NamedMethod::name);
    return at == all.end() ? nullptr : &*at;
  };
  if (value.text() != nullptr) return in(kOfText);
  if (value.dict() != nullptr) return in(kOfDict);
  const Sequence* const sequence = value.sequence();
  return sequence != nullptr && sequence->kind <= Sequence::Kind::tuple ? in(kOfList) : nullptr;
}

}  // namespace

bool has_method(const Value& value, std::string_view name) {
  return find_method(value, name) != nullptr;
}

Result<Value> call_method(Heap& heap, const Value& self, const std::string& name,
                          const Arguments& arguments) {
  const uint64_t size = self.text() != nullptr ? self.text()->size() : 0;
  heap.spend_on_search(size, 0);
  for (const Value& argument : arguments.values) heap.spend_on_search(size + 1, weight_of(argument));
  TIERD_TRY(heap.check());
  return find_method(self, name)->call(heap, self, name, arguments);
}

}  // namespace tierd::jinja
