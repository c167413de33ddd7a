#include "tools/lab/train/judge_ahead.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/store/source.h"
#include "tools/lab/train/low_rank_file.h"

namespace tierd {
namespace {

double mean(const AheadReport& report, double (Quality::*percent)() const) {
  double sum = 0;
  for (const Quality& quality : report.qualities) sum += (quality.*percent)();
  return sum / static_cast<double>(report.qualities.size());
}

}  // namespace

Result<std::vector<AheadReport>> judge_ahead(const AheadRequest& request) {
  TIERD_ASSIGN(const auto source, open_source(request.model));
  const ModelConfig& config = source->config();
  TIERD_ASSIGN(const LowRankFile predictors, LowRankFile::open(request.predictors, config));
  TIERD_ASSIGN(const Activations activations, Activations::open(request.activations, config));
  std::vector<AheadReport> reports;
  for (uint32_t distance = 0; distance <= request.farthest; ++distance)
    reports.emplace_back().distance = distance;
  for (uint32_t layer = request.farthest; layer < config.n_layers; ++layer) {
    if (!predictors.has(layer)) continue;
    TIERD_ASSIGN(const LowRank predictor, predictors.read(layer));
    for (AheadReport& report : reports) {
      TIERD_ASSIGN(const Quality quality,
                   evaluate_share(predictor, activations, layer, layer - report.distance, request.fetched));
      report.layers.push_back(layer);
      report.qualities.push_back(quality);
    }
  }
  if (reports.front().layers.empty()) {
    return Error{Code::invalid_argument, "--ahead",
                 fmt::format("no layer of {} with a predictor is {} layers after another", config.n_layers,
                             request.farthest)};
  }
  return reports;
}

std::string to_table(const std::vector<AheadReport>& reports) {
  std::string text = fmt::format("{:<14}{:>10}{:>12}{:>14}{:>12}{:>16}\n", "layers ahead", "layers",
                                 "active %", "predicted %", "recall %", "missed mass %");
  for (const AheadReport& report : reports) {
    text += fmt::format("{:<14}{:>10}{:>12.2f}{:>14.2f}{:>12.2f}{:>16.2f}\n", report.distance,
                        report.layers.size(), mean(report, &Quality::active_percent),
                        mean(report, &Quality::predicted_percent), mean(report, &Quality::recall_percent),
                        mean(report, &Quality::missed_mass_percent));
  }
  return text;
}

nlohmann::json to_json(const std::vector<AheadReport>& reports) {
  nlohmann::json rows = nlohmann::json::array();
  for (const AheadReport& report : reports) {
    nlohmann::json layers = nlohmann::json::array();
    for (size_t i = 0; i < report.layers.size(); ++i) {
      const Quality& quality = report.qualities[i];
      layers.push_back({{"layer", report.layers[i]},
                        {"pairs", quality.pairs},
                        {"active", quality.active},
                        {"predicted", quality.predicted},
                        {"false_negatives", quality.missed},
                        {"mass", quality.mass},
                        {"missed_mass", quality.missed_mass}});
    }
    rows.push_back({{"distance", report.distance},
                    {"recall_percent", mean(report, &Quality::recall_percent)},
                    {"predicted_percent", mean(report, &Quality::predicted_percent)},
                    {"missed_mass_percent", mean(report, &Quality::missed_mass_percent)},
                    {"layers", std::move(layers)}});
  }
  return rows;
}

}  // namespace tierd
