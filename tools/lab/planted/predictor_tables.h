// Writes the planted low-rank predictors as tables for a plugin.
#pragma once

#include <string>

#include "core/base/result.h"
#include "tools/lab/planted/planted_source.h"

namespace tierd {

// Writes a safetensors file in f16 with, for each layer N, layers.N.ffn.a [rank x d_model] and layers.N.ffn.b
// [d_ff x rank]: a neuron is predicted if b (a x) is above 0, x being the FFN's input after its norm. The
// file is written under another name, synced, then renamed. Errors: no_space, io_error.
Status write_predictor_tables(const PlantedSource& source, const std::string& path, bool quiet);

}  // namespace tierd
