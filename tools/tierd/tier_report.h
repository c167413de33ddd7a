// The part of a report on tiers: budgets and used bytes, cache hits, and the bytes that crossed the links.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/run/runtime.h"
#include "tools/tierd/report_lines.h"
#include "tools/tierd/tier_figures.h"

namespace tierd {

struct RunResult;

// A change of a tier's capacity.
struct BudgetChangeFigures {
  uint64_t step = 0, capacity_bytes = 0, resident_bytes = 0;
  bool raised_to_least = false;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = BudgetChangeFigures;
    return std::tuple(
        Figure{&F::step, "step", count, latest, "the first one with it"},
        Figure{&F::capacity_bytes, "capacity_bytes", bytes, latest, "the new capacity"},
        Figure{&F::resident_bytes, "resident_bytes", bytes, latest, "slots for weights"},
        Figure{&F::raised_to_least, "raised_to_least", flag, latest, "the capacity asked for was too small"});
  }
};

// The memory that limited a capacity which was not given.
struct LimitFigures {
  std::string source;
  uint64_t bytes = 0;

  static constexpr auto figures() {
    using F = LimitFigures;
    return std::tuple(Figure{&F::source, "source", Quantity::text, Adds::latest, "machine or cgroup"},
                      Figure{&F::bytes, "bytes", Quantity::bytes, Adds::latest, "left for the run"});
  }
};

struct BudgetFigures {
  uint64_t capacity_bytes = 0, peak_bytes = 0, used_bytes = 0, least_bytes = 0;
  std::vector<BudgetChangeFigures> changes;
  bool raised_to_least = false, chosen = false;
  LimitFigures limit;
  std::map<std::string, uint64_t> lines;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = BudgetFigures;
    return std::tuple(
        Figure{&F::capacity_bytes, "capacity_bytes", bytes, latest, "now"},
        Figure{&F::peak_bytes, "peak_bytes", bytes, greatest, "the most that was held"},
        Figure{&F::used_bytes, "used_bytes", bytes, latest, "held now"},
        Figure{&F::changes, "changes", parts, latest, "of the capacity"},
        Figure{&F::least_bytes, "least_bytes", bytes, latest, "the least capacity that would do"},
        Figure{&F::raised_to_least, "raised_to_least", flag, latest, "the capacity given was too small"},
        Figure{&F::chosen, "chosen", flag, latest, "the capacity was not given"},
        Figure{&F::limit, "limit", parts, latest, "of the capacities of all tiers"},
        Figure{&F::lines, "lines", bytes, latest, "held now, by purpose"});
  }
};

// Reads of the store by the agents of a tier themselves.
struct DirectFigures {
  std::string way, why;
  uint64_t bytes = 0, verified_bytes = 0;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = DirectFigures;
    return std::tuple(Figure{&F::way, "way", text, latest, "by which bytes reach the tier's memory"},
                      Figure{&F::why, "why", text, latest, "the reason why no other way"},
                      Figure{&F::bytes, "bytes", Quantity::bytes, sum, "read"},
                      Figure{&F::verified_bytes, "verified_bytes", Quantity::bytes, sum, "checked"});
  }
};

// Bytes that a device whose memory is apart has moved from host memory.
struct MoveFigures : MoveCounts {
  static constexpr auto figures() {
    using enum Adds;
    using F = MoveFigures;
    return std::tuple(
        Figure{&F::read_in_place, "read_in_place_bytes", Quantity::bytes, sum, "from registered memory"},
        Figure{&F::gathered, "gathered_bytes", Quantity::bytes, sum, "copied into pinned blocks first"});
  }
};

struct LaunchFigures : RunCounts {
  static constexpr auto figures() {
    using F = LaunchFigures;
    return std::tuple(Figure{&F::runs, "all", Quantity::count, Adds::sum, "runs of the device"},
                      Figure{&F::captured, "captured", Quantity::count, Adds::sum, "launched as one graph"});
  }
};

struct MemoryTierFigures {
  uint32_t count = 0;
  std::string over;
  bool computes = false;
  std::optional<DirectFigures> direct;
  BudgetFigures budget;
  NeuronFigures neurons;
  std::optional<MoveFigures> moves;
  std::optional<LaunchFigures> runs;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = MemoryTierFigures;
    return std::tuple(Figure{&F::count, "count", Quantity::count, latest, "agents"},
                      Figure{&F::over, "over", text, latest, "the tier that it lies over"},
                      Figure{&F::computes, "computes", flag, latest, "its agents compute"},
                      Figure{&F::direct, "direct", parts, sum, "reads of the store by its agents", kOrNull},
                      Figure{&F::budget, "budget", parts, sum, "its memory"},
                      Figure{&F::neurons, "neurons", parts, sum, "requests of it, and of tiers over it"},
                      Figure{&F::moves, "moves", parts, sum, "of a device whose memory is apart"},
                      Figure{&F::runs, "runs", parts, sum, "of a device with launches"});
  }
};

struct TierFigures {
  std::string name, kind;
  std::optional<MemoryTierFigures> memory;  // none: the store's tier

  static constexpr auto figures() {
    using F = TierFigures;
    return std::tuple(Figure{&F::name, "tier", Quantity::text, Adds::latest, "as the configuration calls it"},
                      Figure{&F::kind, "kind", Quantity::text, Adds::latest, "the agent that serves it"},
                      Figure{&F::memory, "", Quantity::parts, Adds::sum, ""});
  }
};

// The traffic of a link, in total and for a decode step.
struct LinkFigures {
  TierLink link;
  LinkCounters decode;  // since the first decode step
  uint64_t steps = 0;   // of decode
  std::optional<double> settled_bytes;

  template <auto M>
  static double each(const LinkFigures& of) {
    return per(std::invoke(M, of.decode), of.steps);
  }
  double busy_ms() const { return ms_each(decode.busy_ns, steps); }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = LinkFigures;
    using C = LinkCounters;
    return std::tuple(
        Figure{&F::link, "", parts, sum, ""}, Basis{&F::decode}, Basis{&F::steps},
        Figure{&F::each<&C::bytes>, "decode_bytes", bytes, derived, "a decode step"},
        Figure{&F::each<&C::payload_bytes>, "decode_payload_bytes", bytes, derived, "weights, a decode step"},
        Figure{&F::each<&C::padding_bytes>, "decode_padding_bytes", bytes, derived, "others, a decode step"},
        Figure{&F::settled_bytes, "decode_settled_bytes", bytes, latest,
               "a decode step after those in which caches fill", kOrNull},
        Figure{&F::busy_ms, "decode_busy_ms", ms, derived, "with a message under way, a decode step"});
  }
};

// Returns the tiers with memories, from the lowest upwards, then the store's.
std::vector<TierFigures> tier_figures(const Runtime& runtime);
std::vector<LinkFigures> link_figures(Runtime& runtime, const RunResult& result);

// Each tier with a memory has lines on its used bytes, on budget changes, and, with more than one tier, on
// its cache. Links have lines where there are several. `step_ms`: of a decode step.
ReportLines tier_lines(const std::vector<TierFigures>& tiers, const std::vector<LinkFigures>& links,
                       double step_ms);
// Returns the lines of --check on budgets.
ReportLines budget_lines(const std::vector<TierFigures>& tiers);

}  // namespace tierd
