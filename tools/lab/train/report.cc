#include "tools/lab/train/report.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace tierd {
namespace {

using nlohmann::json;

struct Column {
  const char* title;
  const char* key;
  double (Quality::*percent)() const;
};
constexpr std::array kColumns = {
    Column{"active %", "active_percent", &Quality::active_percent},
    Column{"predicted %", "predicted_percent", &Quality::predicted_percent},
    Column{"false neg. %", "false_negatives_percent", &Quality::missed_percent},
    Column{"false pos. %", "false_positives_percent", &Quality::spurious_percent},
    Column{"missed mass %", "missed_mass_percent", &Quality::missed_mass_percent},
};

// Returns the mean of the layers' percentages, where each layer counts as much as any other.
double mean(const std::vector<LayerReport>& layers, size_t threshold, const Column& column) {
  double sum = 0;
  for (const LayerReport& layer : layers) sum += (layer.qualities[threshold].*column.percent)();
  return sum / static_cast<double>(layers.size());
}

}  // namespace

std::string to_table(const std::vector<LayerReport>& layers) {
  std::string text;
  for (size_t t = 0; t < layers.front().qualities.size(); ++t) {
    text += fmt::format("threshold {:g}\n{:<6}{:>6}", layers.front().qualities[t].threshold, "layer", "rank");
    for (const Column& column : kColumns) text += fmt::format("{:>15}", column.title);
    text += '\n';
    for (const LayerReport& layer : layers) {
      text += fmt::format("{:<6}{:>6}", layer.layer, layer.rank);
      for (const Column& column : kColumns)
        text += fmt::format("{:>15.2f}", (layer.qualities[t].*column.percent)());
      text += '\n';
    }
    text += fmt::format("{:<12}", "mean");
    for (const Column& column : kColumns) text += fmt::format("{:>15.2f}", mean(layers, t, column));
    text += '\n';
  }
  return text;
}

json to_json(const std::vector<LayerReport>& layers) {
  json rows = json::array();
  for (const LayerReport& layer : layers) {
    json thresholds = json::array();
    for (const Quality& quality : layer.qualities) {
      json& row = thresholds.emplace_back(json{{"threshold", quality.threshold},
                                               {"pairs", quality.pairs},
                                               {"active", quality.active},
                                               {"predicted", quality.predicted},
                                               {"false_negatives", quality.missed},
                                               {"false_positives", quality.spurious},
                                               {"mass", quality.mass},
                                               {"missed_mass", quality.missed_mass}});
      for (const Column& column : kColumns) row[column.key] = (quality.*column.percent)();
    }
    rows.push_back({{"layer", layer.layer}, {"rank", layer.rank}, {"thresholds", std::move(thresholds)}});
  }
  json means = json::array();
  for (size_t t = 0; t < layers.front().qualities.size(); ++t) {
    json& row = means.emplace_back(json{{"threshold", layers.front().qualities[t].threshold}});
    for (const Column& column : kColumns) row[column.key] = mean(layers, t, column);
  }
  return {{"layers", std::move(rows)}, {"mean", std::move(means)}};
}

}  // namespace tierd
