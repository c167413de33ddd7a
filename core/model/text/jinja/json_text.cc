#include "core/model/text/jinja/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/text/jinja/python_text.h"

namespace tierd::jinja {
namespace {

class Writer {
 public:
  explicit Writer(const JsonForm& form) : form_(form) {}

  Status write(const Value& value) {
    if (value.text() != nullptr) {
      write_text(*value.text());
    } else if (value.is_none()) {
      out_ += "null";
    } else if (const bool* const flag = value.get<bool>()) {
      out_ += *flag ? "true" : "false";
    } else if (value.number()) {
      out_ += number_text(value);
    } else if (value.dict() != nullptr) {
      return write_dict(*value.dict());
    } else if (value.sequence() != nullptr && value.sequence()->kind <= Sequence::Kind::tuple) {
      return write_list(value.sequence()->items);
    } else {
      return wrong(fmt::format("tojson of {}, expected a list, a dict, a text, a number, a bool or none",
                               kind_of(value)));
    }
    return {};
  }
  std::string take() { return std::move(out_); }

 private:
  static std::string number_text(const Value& value) {
    const double* const real = value.get<double>();
    if (real == nullptr) return std::to_string(*value.integer());
    if (std::isnan(*real)) return "NaN";
    if (std::isinf(*real)) return *real < 0 ? "-Infinity" : "Infinity";
    return repr_of_double(*real);
  }

  void escape(uint32_t code) { out_ += fmt::format("\\u{:04x}", code); }

  void write_text(std::string_view text) {
    constexpr std::string_view kShort = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    out_ += '"';
    for (size_t at = 0; at < text.size(); at += character_at(text, at).size()) {
      const std::string_view one = character_at(text, at);
      const auto c = static_cast<uint32_t>(code_point(one));
      if (const size_t known = c < 0x80 ? kShort.find(one) : std::string_view::npos;
          known != std::string_view::npos) {
        out_ += '\\';
        out_ += kLetters[known];
      } else if (c < 0x20 || (form_.ascii && c > 0x7e && c < 0x10000)) {
        escape(c);
      } else if (form_.ascii && c >= 0x10000 && c <= 0x10ffff) {
        escape(0xd800 + ((c - 0x10000) >> 10));
        escape(0xdc00 + ((c - 0x10000) & 0x3ff));
      } else {
        out_ += one;
      }
    }
    out_ += '"';
  }

  void line(size_t depth) {
    if (!form_.indent) return;
    out_ += '\n';
    for (size_t i = 0; i < depth; ++i) out_ += *form_.indent;
  }

  Status write_list(const std::vector<Value>& items) {
    out_ += '[';
    ++depth_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) out_ += form_.between;
      line(depth_);
      TIERD_TRY(write(items[i]));
    }
    --depth_;
    if (!items.empty()) line(depth_);
    out_ += ']';
    return bounded();
  }

  Status write_key(const Value& key) {
    if (key.text() != nullptr) {
      write_text(*key.text());
    } else if (key.number() || key.is_none()) {
      out_ += '"';
      TIERD_TRY(write(key));
      out_ += '"';
    } else {
      return wrong(fmt::format("tojson of a dict with {} as a key", kind_of(key)));
    }
    return {};
  }

  Status write_dict(const Dict& dict) {
    std::vector<std::pair<Value, Value>> items = dict.items;
    if (form_.sorted) {
      Status sorted;
      std::ranges::stable_sort(items, [&](const auto& a, const auto& b) {
        const auto order = compare(a.first, b.first);
        if (!order.ok()) sorted = order.error();
        return order.ok() && *order < 0;
      });
      TIERD_TRY(sorted);
    }
    out_ += '{';
    ++depth_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) out_ += form_.between;
      line(depth_);
      TIERD_TRY(write_key(items[i].first));
      out_ += form_.behind_key;
      TIERD_TRY(write(items[i].second));
    }
    --depth_;
    if (!items.empty()) line(depth_);
    out_ += '}';
    return bounded();
  }

  Status bounded() const {
    return out_.size() > kLargestValue ? Status(wrong("the JSON of a value is too large")) : Status();
  }

  const JsonForm& form_;
  std::string out_;
  size_t depth_ = 0;
};

Result<Value> number_of_json(const nlohmann::ordered_json& json) {
  if (json.is_number_unsigned() && json.get<uint64_t>() > uint64_t{INT64_MAX})
    return wrong(fmt::format("the integer {} is beyond 64 bits with a sign", json.get<uint64_t>()));
  return json.is_number_integer() ? Value(json.get<int64_t>()) : Value(json.get<double>());
}

Result<Value> value_at(Heap& heap, const nlohmann::ordered_json& json, uint32_t depth) {
  if (depth > kDeepestValue) return wrong(fmt::format("JSON nested deeper than {} levels", kDeepestValue));
  if (json.is_null()) return Value(None());
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_string()) return heap.text(json.get<std::string>());
  if (json.is_number()) return number_of_json(json);
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& one : json) {
      TIERD_ASSIGN(items.emplace_back(), value_at(heap, one, depth + 1));
    }
    return heap.list(std::move(items));
  }
  auto dict = std::make_shared<Dict>();
  for (const auto& [key, one] : json.items()) {
    TIERD_ASSIGN(Value value, value_at(heap, one, depth + 1));
    dict->set(heap.text(key), std::move(value));
  }
  return heap.dict(std::move(dict));
}

}  // namespace

Result<std::string> json_text(const Value& value, const JsonForm& form) {
  Writer writer(form);
  TIERD_TRY(writer.write(value));
  return writer.take();
}

Result<Value> value_of_json(Heap& heap, const nlohmann::ordered_json& json) {
  return value_at(heap, json, 1);
}

}  // namespace tierd::jinja
