// `tier-train judge`: how well predictors know a layer's neurons from what layers before it compute from,
// which is what fetching that layer's neurons early would have to rely on (M2Cache, section 5.4).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/lab/train/quality.h"

namespace tierd {

struct AheadPlan {
  std::string model;        // as open_source takes it
  std::string activations;  // see Activations; every token is judged
  std::string predictors;   // what train_predictors wrote of the model
  uint32_t farthest = 2;    // layers between an input and the layer whose neurons it is to know: 0 to so many
  double fetched = 0.1;     // of a layer's neurons, those of the highest scores
};

// Each layer's scores come from the input of the layer that lies `distance` before it.
struct AheadReport {
  uint32_t distance = 0;
  std::vector<uint32_t> layers;    // from `farthest` on, those with a predictor: the same at all distances
  std::vector<Quality> qualities;  // of each layer
};

// One for each distance. Errors: of the model, the activations and the file of predictors; invalid_argument
// where no layer with a predictor lies so far behind another.
Result<std::vector<AheadReport>> judge_ahead(const AheadPlan& plan);

// A row for each distance, the mean of its layers.
std::string to_table(const std::vector<AheadReport>& reports);
// [{"distance", "recall_percent", "missed_mass_percent", "layers": [{"layer", …}]}].
nlohmann::json to_json(const std::vector<AheadReport>& reports);

}  // namespace tierd
