// Figures that programs report, each declared once: name, unit, how two of it combine, and help.
//
// A struct of figures declares its members in a function `figures()`:
//
//   struct LinkFigures {
//     uint64_t bytes = 0;
//     uint64_t busy_ns = 0;
//     static constexpr auto figures() {
//       return std::tuple(Figure{&LinkFigures::bytes, "bytes", Quantity::bytes, Adds::sum, "payload that the
//       link carried"},
//                         Figure{&LinkFigures::busy_ns, "busy_ns", Quantity::ns, Adds::sum, "time with a
//                         message under way"});
//     }
//   };
//
// JSON (figure_json.h), sums, differences of two readings, /metrics and the page of all names follow from the
// declarations. A member is a number, a bool, a text, an enum with a function name(), another struct of
// figures, or an optional, a vector, a map by name or a variant of these. Members without a value are left
// out of JSON; a Figure declared `or_null` is null there.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

namespace tierd {

enum class Quantity : uint8_t {
  text,
  flag,
  count,
  bytes,
  bytes_per_second,
  ns,
  us,
  ms,
  seconds,
  tokens,
  tokens_per_second,
  share,    // 0 to 1
  percent,  // 0 to 100
  joules,
  watts,
  grams,
  nats,
  ratio,
  parts,  // a struct, a vector or a map of figures, which have units of their own
};
std::string_view name(Quantity unit);

// How the figure of a whole is made of those of its parts (agents of a tier, links of a memory), and how the
// figure of a period is made of the readings at its end and at its begin.
enum class Adds : uint8_t {
  sum,       // added; subtracted
  greatest,  // the greater of both; as it is at the end
  latest,    // the one that is added last; as it is at the end
};

template <typename T, typename V>
struct Figure {
  using Owner = T;
  using Value = V;

  V T::*member;
  std::string_view name;
  Quantity unit;
  Adds adds;
  std::string_view help;
  bool or_null = false;
};
template <typename T, typename V>
Figure(V T::*, std::string_view, Quantity, Adds, std::string_view) -> Figure<T, V>;
template <typename T, typename V>
Figure(V T::*, std::string_view, Quantity, Adds, std::string_view, bool) -> Figure<T, V>;

template <typename T>
concept HasFigures = requires {
  T::figures();
};

// Calls `visit` with each Figure of T, in the order of declaration.
template <HasFigures T, typename Visit>
constexpr void for_each_figure(Visit&& visit) {
  std::apply([&](const auto&... figure) { (visit(figure), ...); }, T::figures());
}

namespace figures {

template <typename V>
inline constexpr bool is_optional = false;
template <typename V>
inline constexpr bool is_optional<std::optional<V>> = true;
template <typename V>
inline constexpr bool is_vector = false;
template <typename V>
inline constexpr bool is_vector<std::vector<V>> = true;
template <typename V>
inline constexpr bool is_map = false;
template <typename V>
inline constexpr bool is_map<std::map<std::string, V>> = true;
template <typename V>
inline constexpr bool is_variant = false;
template <typename... V>
inline constexpr bool is_variant<std::variant<V...>> = true;

template <typename V>
void combine(V& to, const V& from, Adds adds, bool subtracts);

template <HasFigures T>
void combine_all(T& to, const T& from, bool subtracts) {
  for_each_figure<T>(
      [&](const auto& figure) { combine(to.*figure.member, from.*figure.member, figure.adds, subtracts); });
}

// `subtracts`: `from` is the reading at the begin of a period, `to` the one at its end.
template <typename V>
void combine(V& to, const V& from, Adds adds, bool subtracts) {
  if constexpr (HasFigures<V>) {
    combine_all(to, from, subtracts);
  } else if constexpr (is_optional<V>) {
    if (!from) return;
    if (to)
      combine(*to, *from, adds, subtracts);
    else if (!subtracts)
      to = from;
  } else if constexpr (is_vector<V>) {
    for (size_t i = 0; i < std::min(to.size(), from.size()); ++i) combine(to[i], from[i], adds, subtracts);
    if (!subtracts && to.size() < from.size())
      to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(to.size()), from.end());
  } else if constexpr (is_map<V>) {
    for (const auto& [key, value] : from) {
      const auto there = to.find(key);
      if (there != to.end())
        combine(there->second, value, adds, subtracts);
      else if (!subtracts)
        to.emplace(key, value);
    }
  } else if constexpr (std::is_arithmetic_v<V> && !std::same_as<V, bool>) {
    if (adds == Adds::sum)
      to = subtracts ? static_cast<V>(to - from) : static_cast<V>(to + from);
    else if (!subtracts)
      to = adds == Adds::greatest ? std::max(to, from) : from;
  } else {
    if (!subtracts && adds == Adds::latest) to = from;
  }
}

}  // namespace figures

// Adds the figures of a part to those of the whole.
template <HasFigures T>
void add_figures(T& whole, const T& part) {
  figures::combine_all(whole, part, false);
}

// Returns the figures of the period between two readings.
template <HasFigures T>
T figures_between(const T& begin, T end) {
  figures::combine_all(end, begin, true);
  return end;
}

// One declared name, for pages and tests.
struct DeclaredFigure {
  std::string path;  // "tiers.NAME.cache.hits": parts of a map are NAME, of a vector N
  Quantity unit;
  Adds adds;
  std::string_view help;
};

template <HasFigures T>
void list_figures(const std::string& prefix, std::vector<DeclaredFigure>& list);

namespace figures {

template <typename V>
void list_parts(const std::string& path, std::vector<DeclaredFigure>& list) {
  if constexpr (HasFigures<V>)
    list_figures<V>(path + ".", list);
  else if constexpr (is_optional<V>)
    list_parts<typename V::value_type>(path, list);
  else if constexpr (is_vector<V>)
    list_parts<typename V::value_type>(path + ".N", list);
  else if constexpr (is_map<V>)
    list_parts<typename V::mapped_type>(path + ".NAME", list);
}

}  // namespace figures

// Appends the names that T and its parts declare, each below `prefix`.
template <HasFigures T>
void list_figures(const std::string& prefix, std::vector<DeclaredFigure>& list) {
  for_each_figure<T>([&](const auto& figure) {
    const std::string path = prefix + std::string(figure.name);
    list.push_back({path, figure.unit, figure.adds, figure.help});
    figures::list_parts<typename std::decay_t<decltype(figure)>::Value>(path, list);
  });
}

}  // namespace tierd
