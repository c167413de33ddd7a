// Figures that programs report, each declared once: name, unit, how two of it combine, and help.
//
// A struct of figures declares its members in a function `figures()`:
//
//   struct LinkFigures {
//     uint64_t bytes = 0;
//     uint64_t busy_ns = 0;
//     static constexpr auto figures() {
//       using F = LinkFigures;
//       return std::tuple(Figure{&F::bytes, "bytes", Quantity::bytes, Adds::sum, "that the link carried"},
//                         Figure{&F::busy_ns, "busy_ns", Quantity::ns, Adds::sum, "with a message under
//                         way"});
//     }
//   };
//
// JSON (figure_json.h), sums, differences of two readings, /metrics and the page of all names follow from the
// declarations. A value is a number, a bool, a text, an enum with a function name(), another struct of
// figures, or an optional, an array, a vector, a map by name or a variant of these. Figures without a value
// are left out of JSON; a Figure declared `or_null` is null there, as is such a text that is empty.
//
// In place of a member, a Figure may have a function of the struct, which derives the figure from members
// (Adds::derived). Members that only such functions show are declared as a Basis, so that they add up as
// well. The figures of a member with an empty name belong to the struct itself.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
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
  derived,   // computed from the members that were added
};
std::string_view name(Adds adds);

inline constexpr bool kOrNull = true;

// `member`: a pointer to a member of the struct, or a function of the struct.
template <typename M>
struct Figure {
  static constexpr bool kIsShown = true;
  static constexpr bool kIsMember = std::is_member_object_pointer_v<M>;

  M member;
  std::string_view name;
  Quantity unit;
  Adds adds;
  std::string_view help;
  bool or_null = false;
};
template <typename M>
Figure(M, std::string_view, Quantity, Adds, std::string_view) -> Figure<M>;
template <typename M>
Figure(M, std::string_view, Quantity, Adds, std::string_view, bool) -> Figure<M>;

// A member that adds up and is not shown itself.
template <typename M>
struct Basis {
  static constexpr bool kIsShown = false;
  static constexpr bool kIsMember = true;

  M member;
  Adds adds = Adds::sum;
};
template <typename M>
Basis(M) -> Basis<M>;
template <typename M>
Basis(M, Adds) -> Basis<M>;

template <typename T>
concept HasFigures = requires {
  T::figures();
};

// Calls `visit` with each Figure and Basis of T, in the order of declaration.
template <HasFigures T, typename Visit>
constexpr void for_each_declared(Visit&& visit) {
  std::apply([&](const auto&... declared) { (visit(declared), ...); }, T::figures());
}

// Calls `visit` with each Figure of T, in the order of declaration.
template <HasFigures T, typename Visit>
constexpr void for_each_figure(Visit&& visit) {
  for_each_declared<T>([&](const auto& declared) {
    if constexpr (std::decay_t<decltype(declared)>::kIsShown) visit(declared);
  });
}

// The type of a Figure of T.
template <HasFigures T, typename Declared>
using FigureValue =
    std::remove_cvref_t<std::invoke_result_t<decltype(std::declval<const Declared&>().member), const T&>>;

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
  for_each_declared<T>([&](const auto& declared) {
    if constexpr (std::decay_t<decltype(declared)>::kIsMember)
      combine(to.*declared.member, from.*declared.member, declared.adds, subtracts);
  });
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
  } else if constexpr (std::is_array_v<V>) {
    for (size_t i = 0; i < std::size(to); ++i) combine(to[i], from[i], adds, subtracts);
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
void list_parts(const std::string& prefix, std::vector<DeclaredFigure>& list) {
  if constexpr (HasFigures<V>)
    list_figures<V>(prefix, list);
  else if constexpr (is_optional<V>)
    list_parts<typename V::value_type>(prefix, list);
  else if constexpr (is_vector<V>)
    list_parts<typename V::value_type>(prefix + "N.", list);
  else if constexpr (is_map<V>)
    list_parts<typename V::mapped_type>(prefix + "NAME.", list);
}

}  // namespace figures

// Appends the names that T and its parts declare, each below `prefix`.
template <HasFigures T>
void list_figures(const std::string& prefix, std::vector<DeclaredFigure>& list) {
  for_each_figure<T>([&](const auto& figure) {
    using Value = FigureValue<T, std::decay_t<decltype(figure)>>;
    const std::string path = prefix + std::string(figure.name);
    if (!figure.name.empty()) list.push_back({path, figure.unit, figure.adds, figure.help});
    figures::list_parts<Value>(figure.name.empty() ? prefix : path + ".", list);
  });
}

}  // namespace tierd
