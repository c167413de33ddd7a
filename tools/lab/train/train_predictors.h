// `tier-train predictor`: a low-rank predictor for each layer of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/layout/encoding.h"
#include "tools/lab/train/layer_trainer.h"
#include "tools/lab/train/report.h"

namespace tierd {

struct PredictorRequest {
  std::string model;                  // as open_source takes it
  std::string activations;            // see Activations
  std::string out;                    // the safetensors file
  std::string rank = "d/4";           // see parse_ranks
  Encoding encoding = Encoding::f16;  // of a and b: f16 or f32. The bias is f32
  double held_out = 0.1;              // the last share of the tokens, which is not trained on
  std::vector<double> thresholds = {0.5};
  TrainOptions training;
  bool quiet = false;
};

// Writes layers.N.ffn.a [rank x d_model], layers.N.ffn.b [d_ff x rank] and layers.N.ffn.bias [d_ff] of each
// layer with a rank; the file appears under its name when it is whole. Returns the quality of the predictors,
// as the file has them, on the tokens held out. Errors: those of the model and the activations;
// invalid_argument for a request that does not fit them; no_space, io_error.
Result<std::vector<LayerReport>> train_predictors(const PredictorRequest& request);

}  // namespace tierd
