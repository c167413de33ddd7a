// `tier-train judge`: how well predictors find the active neurons of a layer from the inputs of layers before
// it. Fetching the layer's neurons early has to rely on that (M2Cache, section 5.4).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/lab/train/quality.h"

namespace tierd {

struct AheadRequest {
  std::string model;        // as open_source takes it
  std::string activations;  // see Activations; every token is judged
  std::string predictors;   // the file that train_predictors wrote of the model
  uint32_t farthest = 2;    // the most layers between an input and the layer that is judged by it; from 0 on
  double fetched = 0.1;     // the share of a layer's neurons, those of the highest scores
};

// The quality of scores that are computed from the input of the layer `distance` before each layer.
struct AheadReport {
  uint32_t distance = 0;
  std::vector<uint32_t> layers;    // with a predictor, from `farthest` on: the same at all distances
  std::vector<Quality> qualities;  // of each layer
};

// Returns one report for each distance. Errors: those of the model, the activations and the file of
// predictors; invalid_argument where no layer with a predictor has `farthest` layers before it.
Result<std::vector<AheadReport>> judge_ahead(const AheadRequest& request);

// Returns a row for each distance, the mean of its layers.
std::string to_table(const std::vector<AheadReport>& reports);
// Returns [{"distance", "recall_percent", "missed_mass_percent", "layers": [{"layer", …}]}].
nlohmann::json to_json(const std::vector<AheadReport>& reports);

}  // namespace tierd
