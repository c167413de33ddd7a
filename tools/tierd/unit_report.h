// The part of a report on units that compute in parallel: the neurons that each has computed, how evenly they
// were loaded, and the transfers while some of them were idle.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/figure.h"
#include "core/run/runtime.h"
#include "tools/tierd/report_lines.h"

namespace tierd {

// The units of a tier. Numbers are those of a token.
struct UnitTierFigures {
  std::string tier;
  double computed_share = 0;
  std::vector<double> neurons_of_unit;
  double slowest_ms = 0, mean_ms = 0, layer_ms = 0;
  uint64_t windows = 0;
  std::optional<double> imbalance;  // none: the tier has one unit, or no window is complete

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = UnitTierFigures;
    return std::tuple(
        Figure{&F::tier, "tier", text, latest, "its name"},
        Figure{&F::computed_share, "computed_share", share, latest, "of the neurons that could be elsewhere"},
        Figure{&F::neurons_of_unit, "neurons_of_unit", count, latest, "computed a token, by unit"},
        Figure{&F::slowest_ms, "slowest_ms", ms, latest, "of the slowest unit of each pass, a token"},
        Figure{&F::mean_ms, "mean_ms", ms, latest, "of a unit, a token"},
        Figure{&F::layer_ms, "layer_ms", ms, latest, "of the slowest unit, a layer of a token"},
        Figure{&F::windows, "windows", count, latest, "complete windows of passes"},
        Figure{&F::imbalance, "imbalance", Quantity::ratio, latest, "of a window: most / mean", kOrNull});
  }
};

// The units of a tier at one site.
struct UnitSiteTierFigures {
  std::string tier;
  std::vector<uint64_t> neurons;
  std::vector<double> ms;
  double slowest_ms = 0;
  uint64_t windows = 0;
  std::optional<double> imbalance;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = UnitSiteTierFigures;
    return std::tuple(
        Figure{&F::tier, "tier", text, latest, "its name"},
        Figure{&F::neurons, "neurons", count, sum, "computed, by unit"},
        Figure{&F::ms, "ms", Quantity::ms, latest, "a pass, by unit"},
        Figure{&F::slowest_ms, "slowest_ms", Quantity::ms, latest, "of the slowest unit of each pass"},
        Figure{&F::windows, "windows", count, latest, "complete windows of passes"},
        Figure{&F::imbalance, "imbalance", Quantity::ratio, latest, "of a window: most / mean", kOrNull});
  }
};

struct UnitSiteFigures {
  std::string site;
  uint64_t passes = 0;
  std::vector<UnitSiteTierFigures> tiers;

  static constexpr auto figures() {
    using F = UnitSiteFigures;
    return std::tuple(Figure{&F::site, "site", Quantity::text, Adds::latest, "its name"},
                      Figure{&F::passes, "passes", Quantity::count, Adds::sum, "that do not bypass caches"},
                      Figure{&F::tiers, "tiers", Quantity::parts, Adds::sum, "that compute"});
  }
};

// A tier that has computed all neurons that the balancer could have given to others.
struct AloneFigures {
  std::string tier;
  std::string remedy;

  static constexpr auto figures() {
    using F = AloneFigures;
    return std::tuple(
        Figure{&F::tier, "tier", Quantity::text, Adds::latest, "its name"},
        Figure{&F::remedy, "remedy", Quantity::text, Adds::latest, "a flag that lets others compute"});
  }
};

struct UnitsFigures {
  uint64_t steps = 0;
  uint32_t window = 0;
  double neurons = 0;
  std::optional<AloneFigures> alone;
  std::vector<UnitTierFigures> tiers;
  std::vector<UnitSiteFigures> sites;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = UnitsFigures;
    return std::tuple(
        Figure{&F::steps, "steps", count, latest, "that were counted: those of decoding"},
        Figure{&F::window, "window", count, latest, "passes of a site over which imbalance is taken"},
        Figure{&F::neurons, "neurons", Quantity::count, latest,
               "of a token that could be computed elsewhere"},
        Figure{&F::alone, "alone", parts, latest, "one tier computes all of them", kOrNull},
        Figure{&F::tiers, "tiers", parts, latest, "that compute"},
        Figure{&F::sites, "sites", parts, sum, "in the order of the model"});
  }
};
// Returns none where one unit computes.
std::optional<UnitsFigures> units_figures(const Runtime& runtime);

// Windows in which fetching delays no unit, and the moves in them, a token.
struct IdleFigures {
  IdleCounters idle;
  uint64_t steps = 0;

  template <auto M>
  static double each(const IdleFigures& of) {
    return per(of.idle.*M, of.steps);
  }
  template <auto M>
  static double each_ms(const IdleFigures& of) {
    return per(of.idle.*M, of.steps) * kMs;
  }
  double hidden_share() const { return per(idle.hidden_ns, idle.move_ns); }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = IdleFigures;
    using C = IdleCounters;
    return std::tuple(Basis{&F::idle}, Basis{&F::steps},
                      Figure{&F::each<&C::windows>, "windows", count, derived, "a token"},
                      Figure{&F::each_ms<&C::ns>, "ms", ms, derived, "in windows, a token"},
                      Figure{&F::each<&C::moves>, "moves", count, derived, "messages, a token"},
                      Figure{&F::each<&C::neurons>, "neurons", count, derived, "moved, a token"},
                      Figure{&F::each<&C::bytes>, "bytes", bytes, derived, "moved, a token"},
                      Figure{&F::each_ms<&C::move_ns>, "move_ms", ms, derived, "of moves, a token"},
                      Figure{&F::each_ms<&C::hidden_ns>, "hidden_ms", ms, derived, "of it, in windows"},
                      Figure{&F::hidden_share, "hidden_share", share, derived, "hidden_ms of move_ms"});
  }
};
// Returns none where there was no window (IdleCounters).
std::optional<IdleFigures> idle_figures(const Runtime& runtime);

ReportLines unit_lines(const std::optional<UnitsFigures>& units, const std::optional<IdleFigures>& idle);

}  // namespace tierd
