#include "core/strategy/parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>

#include "core/base/nearest.h"

namespace tierd {
namespace {

using Value = Parameters::Value;

bool is_key(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool one_of(std::string_view choices, std::string_view text) {
  while (!choices.empty()) {
    const size_t bar = std::min(choices.find('|'), choices.size());
    if (choices.substr(0, bar) == text) return true;
    choices.remove_prefix(std::min(bar + 1, choices.size()));
  }
  return false;
}

template <class T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Parses a default as the plugin wrote it.
std::optional<Value> parse_standard(const tierd_param& param) {
  const std::string_view text = param.standard;
  switch (param.type) {
    case TIERD_PARAM_INTEGER:
      if (const auto value = parse<int64_t>(text)) return Value(*value);
      return std::nullopt;
    case TIERD_PARAM_NUMBER:
      if (const auto value = parse<double>(text)) return Value(*value);
      return std::nullopt;
    case TIERD_PARAM_FLAG:
      if (text == "true" || text == "false") return Value(text == "true");
      return std::nullopt;
    default:
      return Value(std::string(text));
  }
}

// Returns the value as the parameter's type, if it has that type and is within its bounds.
std::optional<Value> fit(const tierd_param& param, const Value& value) {
  if (param.type == TIERD_PARAM_FLAG) {
    return std::holds_alternative<bool>(value) ? std::optional(value) : std::nullopt;
  }
  if (param.type == TIERD_PARAM_TEXT) {
    const std::string* text = std::get_if<std::string>(&value);
    const bool fits = text != nullptr && (param.choices == nullptr || one_of(param.choices, *text));
    return fits ? std::optional(value) : std::nullopt;
  }
  const int64_t* whole = std::get_if<int64_t>(&value);
  const double* number = std::get_if<double>(&value);
  if (whole == nullptr && (number == nullptr || param.type == TIERD_PARAM_INTEGER)) return std::nullopt;
  const double x = whole != nullptr ? static_cast<double>(*whole) : *number;
  if (!(x >= param.least && x <= param.most)) return std::nullopt;  // NaN fits nowhere
  return param.type == TIERD_PARAM_INTEGER ? Value(*whole) : Value(x);
}

std::string write(const Value& value) {
  return std::visit(
      [](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return fmt::format("\"{}\"", v);
        } else {
          return fmt::format("{}", v);
        }
      },
      value);
}

}  // namespace

const tierd_param& param(const tierd_plugin& plugin, uint32_t i) {
  const auto* bytes = reinterpret_cast<const std::byte*>(plugin.params) + size_t{i} * plugin.param_size;
  return *reinterpret_cast<const tierd_param*>(bytes);
}

std::string describe_values(const tierd_param& param) {
  const auto bounds = [&](const char* what) {
    if (std::isinf(param.least) && std::isinf(param.most)) return std::string(what);
    if (std::isinf(param.most)) return fmt::format("{} from {}", what, param.least);
    return fmt::format("{} within {} and {}", what, param.least, param.most);
  };
  switch (param.type) {
    case TIERD_PARAM_INTEGER:
      return bounds("a whole number");
    case TIERD_PARAM_NUMBER:
      return bounds("a number");
    case TIERD_PARAM_FLAG:
      return "true or false";
    default:
      if (param.choices == nullptr) return "a text";
      std::string choices = param.choices;
      for (size_t at = 0; (at = choices.find('|', at)) != std::string::npos; at += 2) {
        choices.replace(at, 1, ", ");
      }
      return "one of " + choices;
  }
}

Status check_declarations(const tierd_plugin& plugin, const std::string& origin) {
  std::vector<std::string_view> names;
  for (uint32_t i = 0; i < plugin.n_params; ++i) {
    const tierd_param& p = param(plugin, i);
    const auto fault = [&](const std::string& what) {
      return Error{Code::plugin_fault, origin,
                   fmt::format("its parameter {} {}", p.name == nullptr ? std::to_string(i) : p.name, what)};
    };
    if (p.name == nullptr || !is_key(p.name)) {
      return fault("has an invalid name, expected letters, digits and '_'");
    }
    if (std::find(names.begin(), names.end(), p.name) != names.end()) return fault("is declared twice");
    names.emplace_back(p.name);
    if (p.type > TIERD_PARAM_TEXT) return fault(fmt::format("has the unknown type {}", p.type));
    if (p.help == nullptr) return fault("has no help");
    if (p.standard == nullptr) return fault("has no default");
    const std::optional<Value> standard = parse_standard(p);
    if (!standard || !fit(p, *standard)) {
      return fault(fmt::format("has the default '{}', {} was expected", p.standard, describe_values(p)));
    }
  }
  return {};
}

Result<Parameters> Parameters::read(const tierd_plugin& plugin, const std::vector<Setting>& settings,
                                    std::span<const std::string_view> other_keys, std::string_view table) {
  if (table.empty()) table = plugin.kind;
  Parameters parameters;
  std::vector<std::string_view> known;
  for (uint32_t i = 0; i < plugin.n_params; ++i) {
    const tierd_param& p = param(plugin, i);
    parameters.values_[p.name] = *fit(p, *parse_standard(p));
    known.emplace_back(p.name);
  }
  const std::string listed = known.empty() ? "it has none" : fmt::format("it has {}", fmt::join(known, ", "));
  known.insert(known.end(), other_keys.begin(), other_keys.end());

  std::vector<std::string> errors;
  for (const Setting& setting : settings) {
    const auto value = parameters.values_.find(setting.key);
    if (value == parameters.values_.end()) {
      const std::string_view meant = nearest(setting.key, known);
      errors.push_back(fmt::format("{}: {} '{}' has no parameter '{}'; {}", setting.origin, plugin.kind,
                                   plugin.name, setting.key,
                                   meant.empty() ? listed : fmt::format("did you mean '{}'?", meant)));
      continue;
    }
    for (uint32_t i = 0; i < plugin.n_params; ++i) {
      const tierd_param& p = param(plugin, i);
      if (setting.key != p.name) continue;
      const std::optional<Value> fits = fit(p, setting.value);
      if (!fits) {
        errors.push_back(fmt::format("{}: '{}.{}' is {}, {} was expected", setting.origin, table, setting.key,
                                     write(setting.value), describe_values(p)));
      } else if (*fits != value->second) {
        value->second = *fits;
        parameters.lossy_ = parameters.lossy_ || p.lossy != TIERD_LOSSLESS;
        parameters.lossy_by_memory_ = parameters.lossy_by_memory_ || p.lossy == TIERD_LOSSY_BY_MEMORY;
      }
    }
  }
  if (!errors.empty()) {
    return Error{Code::invalid_argument, "", errors.front(), {errors.begin() + 1, errors.end()}};
  }
  return parameters;
}

}  // namespace tierd
