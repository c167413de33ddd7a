// C++17 over plugin.h: a strategy or a codec is one small class. Header-only; an exception becomes an error
// code and a logged line.
//
//   class Newest {
//    public:
//     explicit Newest(const tierd::Host& host);
//     void share(uint64_t bytes, uint32_t* max_slots);
//     void admit(const tierd_set_view& missing, int priority, uint32_t free_slots, uint8_t* verdict,
//                tierd_victims_out& victims);
//     void landed(uint32_t edition, const uint32_t* idx, uint32_t n);  // optional functions: leave them out
//   };
//   TIERD_PLUGIN(tierd::cache<Newest>("newest", "1.0", "keeps what came last"))
//
// The functions are those of the tables in ext/, without `self`, with references for pointers that are never
// NULL; they return nothing or a status. The constructor takes a Host, a view of tierd_host.
#ifndef TIERD_PLUGIN_HPP
#define TIERD_PLUGIN_HPP

#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "tierd/host.hpp"
#include "tierd/plugin.h"

namespace tierd {

constexpr tierd_param integer(const char* name, const char* standard, double least, double most,
                              const char* help) {
  return {name, TIERD_PARAM_INTEGER, 0, standard, least, most, nullptr, help};
}
constexpr tierd_param number(const char* name, const char* standard, double least, double most,
                             const char* help) {
  return {name, TIERD_PARAM_NUMBER, 0, standard, least, most, nullptr, help};
}
constexpr tierd_param flag(const char* name, const char* standard, const char* help) {
  return {name, TIERD_PARAM_FLAG, 0, standard, 0, 0, nullptr, help};
}
constexpr tierd_param text(const char* name, const char* standard, const char* choices, const char* help) {
  return {name, TIERD_PARAM_TEXT, 0, standard, 0, 0, choices, help};
}
constexpr tierd_param lossy(tierd_param param) {
  param.lossy = TIERD_LOSSY;
  return param;
}
// Lossy, and the loss depends on the content or the size of memories.
constexpr tierd_param lossy_by_memory(tierd_param param) {
  param.lossy = TIERD_LOSSY_BY_MEMORY;
  return param;
}

namespace detail {

template <class T>
struct Instance {
  Host host;
  T strategy;
};

// Calls `function`, and turns an exception into an error code.
template <class F>
int answer(const Host& host, F&& function) {
  const auto say = [&](const char* why) {
    try {
      host.log(TIERD_LOG_ERROR, why);
    } catch (...) {  // no memory for a line: the error code must suffice
    }
  };
  try {
    if constexpr (std::is_void_v<decltype(function())>) {
      function();
      return TIERD_OK;
    } else {
      return static_cast<int>(function());
    }
  } catch (const Failure& failure) {
    say(failure.what());
    return failure.code();
  } catch (const std::bad_alloc&) {
    say("out of memory");
    return TIERD_E_NO_SPACE;
  } catch (const std::exception& error) {
    say(error.what());
    return TIERD_E_INTERNAL;
  } catch (...) {
    say("an exception that is no std::exception");
    return TIERD_E_INTERNAL;
  }
}

template <class T>
int create(const tierd_host* table, void** self) {
  return answer(Host(table), [&] {
    const Host host(table);
    *self = new Instance<T>{host, T(host)};
  });
}
template <class T>
void destroy(void* self) {
  delete static_cast<Instance<T>*>(self);
}

// One function of a table: a pointer that calls T's function of that name, or NULL where T has none.
#define TIERD_DETAIL_FUNCTION(name)                                                                   \
  template <class T, class = void>                                                                    \
  struct Has_##name : std::false_type {};                                                             \
  template <class T>                                                                                  \
  struct Has_##name<T, std::void_t<decltype(&T::name)>> : std::true_type {};                          \
  template <class T, class... A>                                                                      \
  int call_##name(void* self, A... arguments) {                                                       \
    auto& instance = *static_cast<Instance<T>*>(self);                                                \
    return answer(instance.host, [&] { return instance.strategy.name(by_reference(arguments)...); }); \
  }                                                                                                   \
  template <class T, class... A>                                                                      \
  constexpr auto pick_##name(int (*)(void*, A...))->int (*)(void*, A...) {                            \
    if constexpr (Has_##name<T>::value) {                                                             \
      return &call_##name<T, A...>;                                                                   \
    } else {                                                                                          \
      return nullptr;                                                                                 \
    }                                                                                                 \
  }

// Turns views and outputs into references; passes numbers and arrays unchanged.
inline const tierd_set_view& by_reference(const tierd_set_view* view) {
  return *view;
}
inline const tierd_fired_view& by_reference(const tierd_fired_view* view) {
  return *view;
}
inline const tierd_rows_view& by_reference(const tierd_rows_view* view) {
  return *view;
}
inline tierd_set_out& by_reference(tierd_set_out* out) {
  return *out;
}
inline tierd_victims_out& by_reference(tierd_victims_out* out) {
  return *out;
}
inline uint64_t& by_reference(uint64_t* out) {
  return *out;
}
template <class T>
T by_reference(T argument) {
  return argument;
}

TIERD_DETAIL_FUNCTION(predict)
TIERD_DETAIL_FUNCTION(look_ahead)
TIERD_DETAIL_FUNCTION(observe)
TIERD_DETAIL_FUNCTION(begin_sequence)
TIERD_DETAIL_FUNCTION(end_sequence)
TIERD_DETAIL_FUNCTION(reads_x)
TIERD_DETAIL_FUNCTION(fits)
TIERD_DETAIL_FUNCTION(choose)
TIERD_DETAIL_FUNCTION(place)
TIERD_DETAIL_FUNCTION(assign)
TIERD_DETAIL_FUNCTION(share)
TIERD_DETAIL_FUNCTION(admit)
TIERD_DETAIL_FUNCTION(landed)
TIERD_DETAIL_FUNCTION(dropped)
TIERD_DETAIL_FUNCTION(touch)
TIERD_DETAIL_FUNCTION(fill)
TIERD_DETAIL_FUNCTION(ahead)
TIERD_DETAIL_FUNCTION(end_step)
TIERD_DETAIL_FUNCTION(adopt)
TIERD_DETAIL_FUNCTION(resize)
TIERD_DETAIL_FUNCTION(expire)
TIERD_DETAIL_FUNCTION(rows_kept)
TIERD_DETAIL_FUNCTION(resplit)
TIERD_DETAIL_FUNCTION(idle)
TIERD_DETAIL_FUNCTION(rebalance)
TIERD_DETAIL_FUNCTION(fired)
TIERD_DETAIL_FUNCTION(heat)
TIERD_DETAIL_FUNCTION(bound)
TIERD_DETAIL_FUNCTION(compress)
TIERD_DETAIL_FUNCTION(expand)
#undef TIERD_DETAIL_FUNCTION

// The needs and abilities of every instance of a strategy: T::kCaps, or 0.
template <class T, class = void>
struct Caps {
  static constexpr uint32_t value = 0;
};
template <class T>
struct Caps<T, std::void_t<decltype(T::kCaps)>> {
  static constexpr uint32_t value = T::kCaps;
};
// A plugin whose capabilities depend on its parameters defines caps().
template <class T, class = void>
struct TellsCaps : std::false_type {};
template <class T>
struct TellsCaps<T, std::void_t<decltype(std::declval<const T&>().caps())>> : std::true_type {};
template <class T>
uint32_t caps(void* self) {
  if constexpr (TellsCaps<T>::value)
    return static_cast<const Instance<T>*>(self)->strategy.caps();
  else
    return Caps<T>::value;
}

template <class T>
struct PredictorTable {
  using F = tierd_predictor_1;
  static constexpr F table = {sizeof(F),
                              &caps<T>,
                              pick_predict<T>(decltype(F::predict){}),
                              pick_look_ahead<T>(decltype(F::look_ahead){}),
                              pick_observe<T>(decltype(F::observe){}),
                              pick_begin_sequence<T>(decltype(F::begin_sequence){}),
                              pick_end_sequence<T>(decltype(F::end_sequence){}),
                              pick_reads_x<T>(decltype(F::reads_x){}),
                              pick_fits<T>(decltype(F::fits){})};
};
template <class T>
struct QuantizerTable {
  using F = tierd_levels_1;
  static constexpr F table = {sizeof(F), pick_choose<T>(decltype(F::choose){}), &caps<T>};
};
template <class T>
struct CacheTable {
  using F = tierd_cache_1;
  static constexpr F table = {sizeof(F),
                              pick_share<T>(decltype(F::share){}),
                              pick_admit<T>(decltype(F::admit){}),
                              pick_landed<T>(decltype(F::landed){}),
                              pick_dropped<T>(decltype(F::dropped){}),
                              pick_touch<T>(decltype(F::touch){}),
                              pick_fill<T>(decltype(F::fill){}),
                              pick_ahead<T>(decltype(F::ahead){}),
                              pick_end_step<T>(decltype(F::end_step){}),
                              pick_adopt<T>(decltype(F::adopt){}),
                              pick_resize<T>(decltype(F::resize){}),
                              pick_expire<T>(decltype(F::expire){}),
                              pick_rows_kept<T>(decltype(F::rows_kept){}),
                              pick_resplit<T>(decltype(F::resplit){}),
                              pick_begin_sequence<T>(decltype(F::begin_sequence){}),
                              pick_end_sequence<T>(decltype(F::end_sequence){}),
                              pick_idle<T>(decltype(F::idle){})};
};
template <class T>
struct HeatTable {
  using F = tierd_heat_1;
  static constexpr F table = {sizeof(F), pick_fired<T>(decltype(F::fired){}),
                              pick_heat<T>(decltype(F::heat){})};
};
template <class T>
struct BalancerTable {
  using F = tierd_balancer_1;
  static constexpr F table = {sizeof(F), pick_place<T>(decltype(F::place){}),
                              pick_assign<T>(decltype(F::assign){}), &caps<T>,
                              pick_rebalance<T>(decltype(F::rebalance){})};
};
template <class T>
struct CodecTable {
  using F = tierd_codec_1;
  static constexpr F table = {sizeof(F), pick_bound<T>(decltype(F::bound){}),
                              pick_compress<T>(decltype(F::compress){}),
                              pick_expand<T>(decltype(F::expand){})};
};

template <class Table>
const void* extension(const char* id, const char* own) {
  return std::strcmp(id, own) == 0 ? &Table::table : nullptr;
}
template <class T>
const void* predictor_extension(const char* id) {
  if constexpr (Has_heat<T>::value) {
    if (std::strcmp(id, TIERD_HEAT_1) == 0) return &HeatTable<T>::table;
  }
  return extension<PredictorTable<T>>(id, TIERD_PREDICTOR_1);
}
template <class T>
const void* quantizer_extension(const char* id) {
  return extension<QuantizerTable<T>>(id, TIERD_LEVELS_1);
}
template <class T>
const void* cache_extension(const char* id) {
  return extension<CacheTable<T>>(id, TIERD_CACHE_1);
}
template <class T>
const void* balancer_extension(const char* id) {
  return extension<BalancerTable<T>>(id, TIERD_BALANCER_1);
}
template <class T>
const void* codec_extension(const char* id) {
  return extension<CodecTable<T>>(id, TIERD_CODEC_1);
}

template <class T>
constexpr tierd_plugin describe(const char* kind, const char* name, const char* version, const char* summary,
                                const void* (*extension)(const char*)) {
  return {TIERD_ABI_MAJOR,
          TIERD_ABI_MINOR,
          sizeof(tierd_plugin),
          kind,
          name,
          version,
          summary,
          nullptr,
          0,
          nullptr,
          0,
          sizeof(tierd_param),
          &create<T>,
          &destroy<T>,
          extension};
}

}  // namespace detail

// Return the descriptor of a plugin of class T.
template <class T>
constexpr tierd_plugin predictor(const char* name, const char* version, const char* summary) {
  tierd_plugin plugin =
      detail::describe<T>("predictor", name, version, summary, &detail::predictor_extension<T>);
  plugin.lossy = (detail::Caps<T>::value & TIERD_PREDICTOR_LOSSY) != 0 ? 1 : 0;
  return plugin;
}
template <class T>
constexpr tierd_plugin quantizer(const char* name, const char* version, const char* summary) {
  return detail::describe<T>("quantizer", name, version, summary, &detail::quantizer_extension<T>);
}
template <class T>
constexpr tierd_plugin cache(const char* name, const char* version, const char* summary) {
  return detail::describe<T>("cache", name, version, summary, &detail::cache_extension<T>);
}
template <class T>
constexpr tierd_plugin balancer(const char* name, const char* version, const char* summary) {
  return detail::describe<T>("balancer", name, version, summary, &detail::balancer_extension<T>);
}
template <class T>
constexpr tierd_plugin codec(const char* name, const char* version, const char* summary) {
  return detail::describe<T>("codec", name, version, summary, &detail::codec_extension<T>);
}

// Adds a manual, or the declared parameters: with_params(cache<…>(…), kParams).
constexpr tierd_plugin with_manual(tierd_plugin plugin, const char* manual) {
  plugin.manual = manual;
  return plugin;
}
template <std::size_t N>
constexpr tierd_plugin with_params(tierd_plugin plugin, const tierd_param (&params)[N]) {
  plugin.params = params;
  plugin.n_params = static_cast<uint32_t>(N);
  return plugin;
}

}  // namespace tierd

// Exports the plugin of this file. Once, outside any namespace.
#define TIERD_PLUGIN(descriptor) extern "C" TIERD_EXPORT const tierd_plugin tierd_plugin_entry = descriptor;

#endif
