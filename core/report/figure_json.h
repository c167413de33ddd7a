// Declared figures as JSON (figure.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "core/report/figure.h"

namespace tierd {

template <HasFigures T>
nlohmann::json figures_json(const T& of);

namespace figures {

template <typename V>
nlohmann::json value_json(const V& value) {
  if constexpr (HasFigures<V>) {
    return figures_json(value);
  } else if constexpr (is_optional<V>) {
    return value ? value_json(*value) : nlohmann::json(nullptr);
  } else if constexpr (is_vector<V>) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& each : value) list.push_back(value_json(each));
    return list;
  } else if constexpr (is_map<V>) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [key, each] : value) object[key] = value_json(each);
    return object;
  } else if constexpr (is_variant<V>) {
    return std::visit([](const auto& each) { return value_json(each); }, value);
  } else if constexpr (std::is_enum_v<V>) {
    return nlohmann::json(std::string(name(value)));
  } else {
    return nlohmann::json(value);
  }
}

}  // namespace figures

// Returns an object with a key for each figure of `of` that has a value.
template <HasFigures T>
nlohmann::json figures_json(const T& of) {
  nlohmann::json object = nlohmann::json::object();
  for_each_figure<T>([&](const auto& figure) {
    nlohmann::json value = figures::value_json(of.*figure.member);
    if (!value.is_null() || figure.or_null) object[std::string(figure.name)] = std::move(value);
  });
  return object;
}

}  // namespace tierd
