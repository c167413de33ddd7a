// How well the predictors do, for people and for machines.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/lab/train/quality.h"

namespace tierd {

struct LayerReport {
  uint32_t layer = 0;
  uint32_t rank = 0;
  std::vector<Quality> qualities;  // one for each threshold, the same ones in every layer
};

// A block for each threshold, in it a row for each layer and the mean of the rows.
std::string to_table(const std::vector<LayerReport>& layers);

// {"layers": [{"layer", "rank", "thresholds": [{…}]}], "mean": [{…}]}: percentages as in the table, and of
// the layers the counts behind them.
nlohmann::json to_json(const std::vector<LayerReport>& layers);

}  // namespace tierd
