// The strategies that the scheduler asks. Every call goes through `Strategy::call`, so that a plugin which
// throws, answers an error, talks nonsense or takes too long fails the request and nothing else: it is
// quarantined, and not asked again. A predictor or quantizer that says that memory is short fails the request
// alone, since it keeps nothing of its answers and a larger capacity mends it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/kernel/plugin_calls.h"
#include "core/kernel/plugin_deadline.h"
#include "core/kernel/wish_list.h"
#include "tierd/plugin.h"

namespace tierd {

constexpr uint64_t kPluginDeadlineNs = 1'000'000'000;
// Calls are not timed at all.
constexpr uint64_t kNoPluginDeadline = UINT64_MAX;

// The call that asks a predictor whether it can work.
inline constexpr const char* kFits = "fits";

// What all kinds have in common.
class StrategyBase {
 public:
  std::string kind;
  std::string name;
  void* self = nullptr;
  uint64_t deadline_ns = kPluginDeadlineNs;  // a call that took longer is the last one
  const std::string* last_words = nullptr;   // the last error it logged
  PluginCalls* running = nullptr;            // where whoever watches sees its calls; NULL: nobody does
  const std::string* lasting_name = nullptr;
  WishList* wishes = nullptr;  // where its host writes what it wishes for
  uint64_t calls = 0;
  uint64_t ns = 0;  // in them

  // A wrong answer: from now on the strategy is not asked any more.
  Error fault(std::string_view function, const std::string& what) {
    if (reason_.empty()) reason_ = fmt::format("{}: {}", function, what);
    return error();
  }
  bool quarantined() const { return !reason_.empty(); }
  // Only a quarantined strategy has this error, which says why.
  Error error() const { return {Code::plugin_fault, fmt::format("{} '{}'", kind, name), reason_}; }

  // Calls, and turns what went wrong into an error.
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
  // An answer below zero.
  Error refusal(const char* what, int code) {
    const bool said = last_words != nullptr && !last_words->empty();
    if (code == TIERD_E_NO_SPACE && (kind == "predictor" || kind == "quantizer")) {
      return {Code::no_space, fmt::format("{} '{}'", kind, name),
              fmt::format("{}: {}", what, said ? *last_words : "memory is short")};
    }
    // A predictor that says, before a run begins, that it could not work is no faulty one.
    if (code == TIERD_E_UNSUPPORTED && said && std::string_view(what) == kFits)
      return {Code::unsupported, fmt::format("{} '{}'", kind, name), *last_words};
    return fault(what, fmt::format("answered {}{}{}", code, said ? ": " : "", said ? *last_words : ""));
  }

  std::string reason_;  // empty: it is well
};

template <class Table>
class Strategy : public StrategyBase {
 public:
  Table table{};  // functions that the plugin does not have are NULL

  // A function that every strategy of the kind has, or one that `has` answered for.
  template <class... Parameters, class... Arguments>
  Status call(int (*Table::*function)(void*, Parameters...), const char* what, Arguments... arguments) {
    return watch(what, [&] { return (table.*function)(self, arguments...); });
  }
  // The same, with what it wishes for meanwhile in `wishes`.
  template <class... Parameters, class... Arguments>
  Status call_for_wishes(int (*Table::*function)(void*, Parameters...), const char* what,
                         Arguments... arguments) {
    wishes->open();
    Status answer = call(function, what, arguments...);
    wishes->close();
    return answer;
  }
  // One that it may leave out: then nothing happens.
  template <class... Parameters, class... Arguments>
  Status call_if(int (*Table::*function)(void*, Parameters...), const char* what, Arguments... arguments) {
    if (table.*function == nullptr) return {};
    return call(function, what, arguments...);
  }
};

// What a strategy needs and may do; one without the function, nothing.
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
  std::vector<uint8_t> reads_x = {};  // [sites] the predictor wants what the site computes from; empty: never
  std::vector<uint8_t> scored = {};   // [sites] somebody ranks the neurons that are active; empty: never
  Strategy<tierd_levels_1> quantizer;
  std::vector<Strategy<tierd_cache_1>> caches =
      std::vector<Strategy<tierd_cache_1>>(1);  // memory m's at m - 1
  Strategy<tierd_balancer_1> balancer;
  // An ability of the predictor, or of one that is there for nothing else. Without functions: nobody can say
  // how hot neurons are.
  Strategy<tierd_heat_1> heat;
  std::vector<std::vector<uint8_t>> heat_of =
      {};  // [sites][n] what it has said last of a site; empty: nothing yet

  bool has_heat() const { return heat.table.heat != nullptr; }
};

// What asking them has cost; watching the clock included.
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
