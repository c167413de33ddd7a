// The quality of trained predictors, as a table and as JSON.
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
  std::vector<Quality> qualities;  // one for each threshold; all layers have the same thresholds
};

// Returns a block for each threshold, with a row for each layer and the mean of the rows.
std::string to_table(const std::vector<LayerReport>& layers);

// Returns {"layers": [{"layer", "rank", "thresholds": [{…}]}], "mean": [{…}]}: the percentages of the table,
// and for each layer the counts behind them.
nlohmann::json to_json(const std::vector<LayerReport>& layers);

}  // namespace tierd
