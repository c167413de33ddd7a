// The ranks of the predictors, layer by layer, as the command line names them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/config.h"

namespace tierd {

// Returns the ranks [layers], 0 for a layer without a predictor. A value is a rank ("128"), a share of the
// width ("d/4") or "none"; `text` is one value for all layers, or values of layers and runs of layers that
// name each layer once, such as "0-27=128,28-31=1024". Ranks are at least 1 and at most the smaller of
// d_model and d_ff. Error: invalid_argument naming --rank.
Result<std::vector<uint32_t>> parse_ranks(std::string_view text, const ModelConfig& config);

}  // namespace tierd
