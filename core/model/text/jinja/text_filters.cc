// Filters of texts and numbers.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/model/text/jinja/filter_table.h"
#include "core/model/text/jinja/filters.h"
#include "core/model/text/jinja/json_text.h"
#include "core/model/text/jinja/operators.h"
#include "core/model/text/jinja/python_text.h"

namespace tierd::jinja {
namespace {

Result<Value> trim_filter(Heap& heap, const std::string& name, const Value& value,
                          const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"chars"}));
  TIERD_ASSIGN(const std::optional<std::string> chars, bound.text_or_none(0));
  TIERD_ASSIGN(const std::string text, str(value));
  return heap.text(std::string(stripped(text, Side::both, chars)), is_markup(value));
}

// Begins each word of jinja2's title() with a capital.
Result<std::string> title_of(std::string_view text) {
  std::string out;
  bool begins = true;
  for (size_t at = 0; at < text.size(); at += character_at(text, at).size()) {
    const std::string_view one = character_at(text, at);
    TIERD_ASSIGN(const std::string changed, begins ? upper(one) : lower(one));
    out += changed;
    begins = is_space(one) || std::string_view("-({[<").find(one) != std::string_view::npos;
  }
  return out;
}

Result<Value> change_case_filter(Heap& heap, const std::string& name, const Value& value,
                                 const Arguments& arguments) {
  TIERD_TRY(Bound::bind(name, arguments, {}));
  TIERD_ASSIGN(const std::string text, str(value));
  TIERD_ASSIGN(std::string changed, name == "upper"   ? upper(text)
                                    : name == "lower" ? lower(text)
                                    : name == "title" ? title_of(text)
                                                      : capitalized(text));
  return heap.text(std::move(changed), is_markup(value));
}

Result<Value> replace_filter(Heap& heap, const std::string& name, const Value& value,
                             const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"old", "new", "count"}, 2));
  TIERD_ASSIGN(const std::string text, str(value));
  TIERD_ASSIGN(const std::string from, str(*bound[0]));
  TIERD_ASSIGN(const std::string to, str(*bound[1]));
  const bool all = bound[2] == nullptr || bound[2]->is_none();
  TIERD_ASSIGN(const int64_t most, all ? Result<int64_t>(-1) : bound.integer(2, -1));
  TIERD_ASSIGN(std::string out, replaced(text, from, to, most));
  return heap.text(std::move(out));
}

Result<Value> indent_filter(Heap& heap, const std::string& name, const Value& value,
                            const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"width", "first", "blank"}));
  std::string by(4, ' ');
  if (bound[0] != nullptr && bound[0]->text() != nullptr) {
    by = *bound[0]->text();
  } else if (bound[0] != nullptr) {
    TIERD_ASSIGN(const int64_t width, bound.integer(0, 4));
    if (width > 256) return wrong(fmt::format("indent by {}, expected at most 256", width));
    by.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  if (value.text() == nullptr) return wrong(fmt::format("indent of {}, expected a text", kind_of(value)));
  const bool blank = bound.flag(2, false);
  std::string out = bound.flag(1, false) ? by : "";
  bool begins = true;
  const std::string ended = *value.text() + "\n";
  for (const std::string_view line : lines_of(ended)) {
    if (!begins) out += '\n';
    if (!begins && (blank || !line.empty())) out += by;
    out += line;
    begins = false;
    if (out.size() > kLargestValue) return wrong("a text is larger than 32 MiB");
  }
  return heap.text(std::move(out), is_markup(value));
}

Result<Value> string_of_filter(Heap& heap, const std::string& name, const Value& value,
                               const Arguments& arguments) {
  TIERD_TRY(Bound::bind(name, arguments, {}));
  if (value.text() != nullptr) return value;
  TIERD_ASSIGN(std::string text, str(value));
  return heap.text(std::move(text));
}

// `safe` and `escape`, whose results are not escaped again.
Result<Value> markup_filter(Heap& heap, const std::string& name, const Value& value,
                            const Arguments& arguments) {
  TIERD_TRY(Bound::bind(name, arguments, {}));
  TIERD_ASSIGN(std::string text, str(value));
  const bool escapes = name == "forceescape" || (name != "safe" && !is_markup(value));
  return heap.text(escapes ? html_escaped(text) : std::move(text), true);
}

Result<Value> format_filter(Heap& heap, const std::string& name, const Value& value,
                            const Arguments& arguments) {
  if (!arguments.named.empty()) return wrong(fmt::format("{} with names is not supported", name));
  TIERD_ASSIGN(const std::string form, str(value));
  return formatted(heap, form, heap.sequence(Sequence::Kind::tuple, arguments.values));
}

Result<Value> center_filter(Heap& heap, const std::string& name, const Value& value,
                            const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"width"}));
  TIERD_ASSIGN(const int64_t width, bound.integer(0, 80));
  TIERD_ASSIGN(const std::string text, str(value));
  if (width > static_cast<int64_t>(kMostItems))
    return wrong(fmt::format("center expects a width of at most {}", kMostItems));
  const int64_t lacking = std::max<int64_t>(width - static_cast<int64_t>(characters_in(text)), 0);
  const int64_t left = lacking / 2 + (lacking & width & 1);
  return heap.text(std::string(static_cast<size_t>(left), ' ') + text +
                   std::string(static_cast<size_t>(lacking - left), ' '));
}

// Returns Python's int() or float() of a text; nothing if it is no number.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
  std::string digits;
  for (const char c : stripped(text, Side::both)) {
    if (c == '_' && (digits.empty() || digits.back() < '0' || digits.back() > '9')) return {};
    if (c != '_') digits += c;
  }
  std::string_view read = digits;
  if (read.starts_with('+') && !read.starts_with("+-")) read.remove_prefix(1);
  Number number{};
  const auto end = std::from_chars(read.data(), read.data() + read.size(), number);
  const bool whole = end.ec == std::errc() && end.ptr == read.data() + read.size() && !read.empty();
  return whole && !text.ends_with('_') ? std::optional(number) : std::nullopt;
}

Result<Value> whole_of(double real) {
  if (std::fabs(real) >= 9.2e18) return wrong("an integer is beyond 64 bits");
  return Value(static_cast<int64_t>(real));
}

Result<Value> to_integer_filter(Heap&, const std::string& name, const Value& value,
                                const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"default", "base"}));
  TIERD_ASSIGN(const int64_t base, bound.integer(1, 10));
  if (base != 10) return wrong(fmt::format("int with the base {} is not supported, expected 10", base));
  const Value otherwise = bound[0] == nullptr ? Value(int64_t{0}) : *bound[0];
  if (value.is_undefined()) return undefined_error(value);
  if (value.integer()) return Value(*value.integer());
  std::optional<double> real = value.number();
  if (const std::string* const text = value.text()) {
    if (const auto whole = number_of<int64_t>(*text)) return Value(*whole);
    real = number_of<double>(*text);
  }
  return real && std::isfinite(*real) ? whole_of(*real) : otherwise;
}

Result<Value> to_float_filter(Heap&, const std::string& name, const Value& value,
                              const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"default"}));
  if (value.is_undefined()) return undefined_error(value);
  if (value.number()) return Value(*value.number());
  const auto real = value.text() != nullptr ? number_of<double>(*value.text()) : std::nullopt;
  return real ? Value(*real) : bound[0] == nullptr ? Value(0.0) : *bound[0];
}

Result<Value> absolute_filter(Heap&, const std::string& name, const Value& value,
                              const Arguments& arguments) {
  TIERD_TRY(Bound::bind(name, arguments, {}));
  const auto number = value.number();
  if (number && *number < 0) return negative(value);
  if (!number) return wrong(fmt::format("abs of {}, expected a number", kind_of(value)));
  return value.integer() ? Value(*value.integer()) : value;
}

Result<Value> round_number_filter(Heap&, const std::string& name, const Value& value,
                                  const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"precision", "method"}));
  TIERD_ASSIGN(const int64_t precision, bound.integer(0, 0));
  TIERD_ASSIGN(const std::string method, bound.text(1, "common"));
  const auto number = value.number();
  if (!number) return wrong(fmt::format("round of {}, expected a number", kind_of(value)));
  if (precision < 0 || precision > 15)
    return wrong(fmt::format("round to {} digits, expected 0 to 15", precision));
  if (method == "common") {
    if (value.integer()) return Value(*value.integer());
    if (!std::isfinite(*number)) return value;
    return Value(*number_of<double>(fmt::format("{:.{}f}", *number, precision)));
  }
  if (method != "ceil" && method != "floor") return wrong("the method of round is not common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  return Value((method == "ceil" ? std::ceil(*number * scale) : std::floor(*number * scale)) / scale);
}

Result<Value> to_json_filter(Heap& heap, const std::string& name, const Value& value,
                             const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound,
               Bound::bind(name, arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonForm form;
  form.ascii = bound.flag(0, false);
  form.sorted = bound.flag(3, false);
  if (bound[1] != nullptr && bound[1]->text() != nullptr) {
    form.indent = *bound[1]->text();
  } else if (bound[1] != nullptr && !bound[1]->is_none()) {
    TIERD_ASSIGN(const int64_t width, bound.integer(1, 0));
    form.indent = std::string(static_cast<size_t>(std::clamp<int64_t>(width, 0, 65)), ' ');
  }
  if (form.indent && form.indent->size() > 64)
    return wrong("tojson with an indent of more than 64 characters");
  if (form.indent) form.between = ",";
  if (bound[2] != nullptr && !bound[2]->is_none()) {
    const Sequence* const pair = bound[2]->sequence();
    const bool texts = pair != nullptr && pair->items.size() == 2 && pair->items[0].text() != nullptr &&
                       pair->items[1].text() != nullptr;
    if (!texts || weight_of(*bound[2]) > 256)
      return wrong("the separators of tojson are not two short texts");
    form.between = *pair->items[0].text();
    form.behind_key = *pair->items[1].text();
  }
  TIERD_ASSIGN(std::string text, json_text(value, form));
  return heap.text(std::move(text));
}

Result<Value> default_of_filter(Heap& heap, const std::string& name, const Value& value,
                                const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {"default_value", "boolean"}));
  if (!value.is_undefined() && (!bound.flag(1, false) || is_true(value))) return value;
  return bound[0] == nullptr ? heap.text("") : *bound[0];
}

constexpr auto kTextFilters =
    std::to_array<NamedFilter>({{"abs", absolute_filter},       {"capitalize", change_case_filter},
                                {"center", center_filter},      {"d", default_of_filter},
                                {"default", default_of_filter}, {"e", markup_filter},
                                {"escape", markup_filter},      {"float", to_float_filter},
                                {"forceescape", markup_filter}, {"format", format_filter},
                                {"indent", indent_filter},      {"int", to_integer_filter},
                                {"lower", change_case_filter},  {"replace", replace_filter},
                                {"round", round_number_filter}, {"safe", markup_filter},
                                {"string", string_of_filter},   {"title", change_case_filter},
                                {"tojson", to_json_filter},     {"trim", trim_filter},
                                {"upper", change_case_filter}});

}  // namespace

std::span<const NamedFilter> text_filters() {
  return kTextFilters;
}

}  // namespace tierd::jinja
