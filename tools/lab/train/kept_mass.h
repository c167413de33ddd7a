// The part of a network's result that is left where only the neurons of the highest scores are computed.
// Predictor `low-rank` drops neurons to fit a memory only by tables with this part.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/lab/train/activations.h"
#include "tools/lab/train/low_rank.h"

namespace tierd {

// The suffix of the tensor in a safetensors file, SITE.kept [kKeptLevels], one for each site.
inline constexpr const char* kKept = ".kept";
inline constexpr uint32_t kKeptLevels = 21;  // shares of the neurons, 0 to 1 in equal steps

// Returns, for each share of the neurons, those of the highest scores, their part of the sum of all
// contributions, over the tokens from `first` up to the last. Errors: those of reading.
Result<std::vector<float>> kept_mass(const LowRank& predictor, const Activations& activations, uint32_t layer,
                                     uint32_t first);

// The files of a judgement: predictors are copied to `out`, with the part that they keep of these
// activations.
struct KeptMassRequest {
  std::string model;        // as open_source takes it
  std::string activations;  // of a text that was not trained on
  std::string predictors;
  std::string out;
};
// Errors: those of the files; invalid_argument where `out` is one of the others.
Status write_kept_mass(const KeptMassRequest& request);

}  // namespace tierd
