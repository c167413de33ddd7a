// The strategies that the scheduler calls. Every call goes through `Strategy::call`, so a plugin that throws,
// returns an error or an invalid answer, or takes too long fails only the request, and is quarantined. A
// predictor or quantizer that reports a lack of memory fails the request but is not quarantined, since it
// keeps nothing of its answers and a larger capacity is the remedy.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/plugin_calls.h"
#include "core/kernel/plugin_deadline.h"
#include "core/kernel/wish_list.h"
#include "tierd/plugin.h"

namespace tierd {

constexpr uint64_t kPluginDeadlineNs = 1'000'000'000;
// Calls are not timed.
constexpr uint64_t kNoPluginDeadline = UINT64_MAX;

// The call that asks a predictor whether it can work with the present memories.
inline constexpr const char* kFits = "fits";

// The part that all kinds share.
class StrategyBase {
 public:
  std::string kind;
  std::string name;
  void* self = nullptr;
  uint64_t deadline_ns = kPluginDeadlineNs;  // a longer call is the last one
  const std::string* last_words = nullptr;   // the last error line that it logged
  PluginCalls* running = nullptr;            // shows its calls to a watcher; NULL: there is none
  const std::string* lasting_name = nullptr;
  WishList* wishes = nullptr;  // its host writes wishes here
  uint64_t calls = 0;
  uint64_t ns = 0;  // time in these calls

  // Quarantines the strategy because of a wrong answer.
  Error fault(std::string_view function, const std::string& what) {
    if (reason_.empty()) reason_ = fmt::format("{}: {}", function, what);
    return error();
  }
  bool quarantined() const { return !reason_.empty(); }
  // Returns the reason of the quarantine.
  Error error() const { return {Code::plugin_fault, fmt::format("{} '{}'", kind, name), reason_}; }

  // Calls `function`, and turns a failure into an error.
  template <class Function>
  Status watch(const char* what, Function&& function) {
    if (quarantined()) return error();
    int code = TIERD_OK;
    const PluginCalls::Scope scope(running, lasting_name, what);
    const PluginDeadline deadline(deadline_ns != kNoPluginDeadline);
    try {
      code = function();
    } catch (const std::exception& thrown) {
      return fault(what, fmt::format("threw an exception: {}", thrown.what()));
    } catch (...) {
      return fault(what, "threw an exception");
    }
    const uint64_t took = deadline.took_ns();
    ++calls;
    ns += took;
    if (code < 0) return refusal(what, code);
    if (took <= deadline_ns) return {};
    const auto overrun = deadline.overrun(took, deadline_ns, scope);
    return overrun ? fault(what, *overrun) : Status();
  }

 private:
  // Handles a negative answer.
  Error refusal(const char* what, int code) {
    const bool said = last_words != nullptr && !last_words->empty();
    if (code == TIERD_E_NO_SPACE && (kind == "predictor" || kind == "quantizer")) {
      return {Code::no_space, fmt::format("{} '{}'", kind, name),
              fmt::format("{}: {}", what, said ? *last_words : "memory is short")};
    }
    // A predictor that reports before a run that it cannot work is not faulty.
    if (code == TIERD_E_UNSUPPORTED && said && std::string_view(what) == kFits)
      return {Code::unsupported, fmt::format("{} '{}'", kind, name), *last_words};
    return fault(what, fmt::format("answered {}{}{}", code, said ? ": " : "", said ? *last_words : ""));
  }

  std::string reason_;  // empty: not quarantined
};

template <class Table>
class Strategy : public StrategyBase {
 public:
  Table table{};  // functions that the plugin lacks are NULL

  // Calls a function that every strategy of the kind has, or whose presence was checked.
  template <class... Parameters, class... Arguments>
  Status call(int (*Table::*function)(void*, Parameters...), const char* what, Arguments... arguments) {
    return watch(what, [&] { return (table.*function)(self, arguments...); });
  }
  // As `call`; collects the wishes made meanwhile in `wishes`.
  template <class... Parameters, class... Arguments>
  Status call_for_wishes(int (*Table::*function)(void*, Parameters...), const char* what,
                         Arguments... arguments) {
    wishes->open();
    Status answer = call(function, what, arguments...);
    wishes->close();
    return answer;
  }
  // Calls an optional function, if the plugin has it.
  template <class... Parameters, class... Arguments>
  Status call_if(int (*Table::*function)(void*, Parameters...), const char* what, Arguments... arguments) {
    if (table.*function == nullptr) return {};
    return call(function, what, arguments...);
  }
};

// Sets `caps` to the needs and abilities of a strategy; 0 if it has no such function.
template <class Table>
Status caps_of(Strategy<Table>& strategy, uint32_t& caps) {
  caps = 0;
  if (strategy.table.caps == nullptr) return {};
  return strategy.watch("caps", [&] {
    caps = strategy.table.caps(strategy.self);
    return int{TIERD_OK};
  });
}

struct Strategies {
  Strategy<tierd_predictor_1> predictor;
  std::vector<uint8_t> reads_x = {};  // [sites] the predictor reads the site's input; empty: never
  std::vector<uint8_t> scored = {};   // [sites] a strategy ranks the active neurons; empty: never
  Strategy<tierd_levels_1> quantizer;
  std::vector<Strategy<tierd_cache_1>> caches =
      std::vector<Strategy<tierd_cache_1>>(1);  // memory m's cache at m - 1
  Strategy<tierd_balancer_1> balancer;
  // An ability of the predictor, or a predictor loaded for this alone. Without functions: heat is not known.
  Strategy<tierd_heat_1> heat;
  std::vector<std::vector<uint8_t>> heat_of = {};  // [sites][n] its last answer for a site; empty: none yet

  bool has_heat() const { return heat.table.heat != nullptr; }
};

// The cost of all calls, including reading the clock.
struct StrategyCost {
  uint64_t calls = 0;
  uint64_t ns = 0;
};
inline StrategyCost cost_of(const Strategies& s) {
  StrategyCost cost;
  const auto add = [&](const StrategyBase& strategy) {
    cost.calls += strategy.calls;
    cost.ns += strategy.ns;
  };
  add(s.predictor), add(s.quantizer), add(s.balancer), add(s.heat);
  for (const auto& cache : s.caches) add(cache);
  return cost;
}

}  // namespace tierd
