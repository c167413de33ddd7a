// Names of enums whose values count from 0. Such an enum declares its names beside itself:
//
//   enum class Layout : uint8_t { row, neuron };
//   constexpr std::array<std::string_view, 2> names_of(Layout) { return {"row", "neuron"}; }
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

namespace tierd {

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  names_of(value).size();
};

template <NamedEnum E>
constexpr std::string_view name(E value) {
  return names_of(value)[static_cast<size_t>(value)];
}

template <NamedEnum E>
constexpr std::optional<E> by_name(std::string_view text) {
  constexpr auto kNames = names_of(E{});
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace tierd
