// The part of a report on decisions: the strategies and their cost, and how well neurons and experts were
// predicted.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/report/figure.h"
#include "core/run/runtime.h"
#include "tools/tierd/report_lines.h"

namespace tierd {

// A strategy, and the cost of its calls a step.
struct StrategyFigures {
  std::string strategy;
  std::string version;
  std::string file;
  bool lossy = false;
  std::map<std::string, Parameters::Value> parameters;
  std::map<std::string, double> metrics;
  double calls = 0;
  double ms = 0;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = StrategyFigures;
    return std::tuple(
        Figure{&F::strategy, "name", text, latest, "of the plugin"},
        Figure{&F::version, "version", text, latest, "of the plugin"},
        Figure{&F::file, "file", text, latest, "of the plugin"},
        Figure{&F::lossy, "lossy", flag, latest, "it may change results"},
        Figure{&F::parameters, "parameters", text, latest, "with their defaults"},
        Figure{&F::metrics, "metrics", Quantity::ratio, latest, "that the strategy itself counts"},
        Figure{&F::calls, "calls", count, latest, "a step"},
        Figure{&F::ms, "ms", Quantity::ms, latest, "in calls, a step"});
  }
};

struct StrategiesFigures {
  StrategyFigures predictor, quantizer, cache, balancer;
  std::map<std::string, StrategyFigures> caches;  // of each tier's first memory
  std::optional<StrategyFigures> heat;
  double ms = 0;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = StrategiesFigures;
    return std::tuple(Figure{&F::predictor, "predictor", parts, latest, "chooses the neurons of a pass"},
                      Figure{&F::quantizer, "quantizer", parts, latest, "chooses their editions"},
                      Figure{&F::cache, "cache", parts, latest, "of the first memory"},
                      Figure{&F::caches, "caches", parts, latest, "by tier, of its first memory"},
                      Figure{&F::balancer, "balancer", parts, latest, "divides neurons among units"},
                      Figure{&F::heat, "heat", parts, latest, "keeps the neurons' heat, if apart"},
                      Figure{&F::ms, "ms", Quantity::ms, latest, "in calls of all strategies, a step"});
  }
};
StrategiesFigures strategies_figures(Runtime& runtime);
ReportLines strategy_lines(const StrategiesFigures& strategies);

// A site whose neurons are predicted: the used share and, where it was measured, the quality.
struct PredictionFigures {
  std::string site;
  uint32_t neurons = 0;
  SiteUse use;

  bool measured() const { return use.measured_rows != 0; }
  double used() const { return per(use.used, use.rows); }
  template <auto Value>
  static std::optional<double> if_measured(const PredictionFigures& of) {
    return of.measured() ? std::optional((of.use.*Value)()) : std::nullopt;
  }
  std::optional<double> active() const {
    return measured() ? std::optional(per(use.active, use.measured_rows)) : std::nullopt;
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = PredictionFigures;
    return std::tuple(
        Basis{&F::use}, Figure{&F::site, "site", text, latest, "its name"},
        Figure{&F::neurons, "neurons", count, latest, "of the site"},
        Figure{&F::used, "used", count, derived, "neurons a token"},
        Figure{[](const F& f) { return f.use.measured_rows; }, "measured_rows", count, derived, "tokens"},
        Figure{&F::active, "active", count, derived, "neurons that contribute, a token"},
        Figure{&F::if_measured<&SiteUse::recall>, "recall", share, derived, "used, of the active ones"},
        Figure{&F::if_measured<&SiteUse::precision>, "precision", share, derived, "active, of the used ones"},
        Figure{&F::if_measured<&SiteUse::missed_share>, "missed_mass", share, derived,
               "of all contributions, those that were left out"});
  }
};
std::vector<PredictionFigures> prediction_figures(const Runtime& runtime);
// Returns one line: means over the sites, and the worst site.
std::string prediction_text(const std::vector<PredictionFigures>& sites);

// The experts of a layer: those that a token uses, how many were resident, and how well they were predicted.
struct ExpertFigures {
  std::string site;
  uint32_t experts = 0;
  SiteUse use;

  double used() const { return per(use.used, use.rows); }
  template <auto Value>
  static std::optional<double> if_foreseen(const ExpertFigures& of) {
    return of.use.foreseen != 0 ? std::optional((of.use.*Value)()) : std::nullopt;
  }
  std::optional<uint64_t> foreseen() const {
    return use.foreseen != 0 ? std::optional(use.foreseen) : std::nullopt;
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = ExpertFigures;
    return std::tuple(
        Basis{&F::use}, Figure{&F::site, "site", text, latest, "its name"},
        Figure{&F::experts, "experts", count, latest, "of the site"},
        Figure{&F::used, "used", count, derived, "experts a token"},
        Figure{[](const F& f) { return f.use.hits; }, "hits", count, derived, "used ones that were resident"},
        Figure{[](const F& f) { return f.use.staged; }, "staged", count, derived, "that were read ahead"},
        Figure{[](const F& f) { return f.use.misses; }, "misses", count, derived, "neither"},
        Figure{&F::foreseen, "foreseen", count, derived, "predicted by look-ahead"},
        Figure{&F::if_foreseen<&SiteUse::ahead_precision>, "precision", share, derived, "used, of foreseen"},
        Figure{&F::if_foreseen<&SiteUse::ahead_recall>, "recall", share, derived, "foreseen, of used"});
  }
};
std::vector<ExpertFigures> expert_figures(const Runtime& runtime);
// Returns "8 of 64 a token: 61 % were there, 12 % came ahead; foreseen with precision 80 %, recall 79 %".
std::string experts_text(const std::vector<ExpertFigures>& sites);

}  // namespace tierd
