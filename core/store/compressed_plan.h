// The plan of a store with compressed neurons, whose sizes are known only after their values were read.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/model/layout/neuron_codec.h"
#include "core/model/tensor_source.h"
#include "core/store/manifest.h"

namespace tierd {

// Returns the plan in which each site has the requested compression (Manifest::compression) if that makes it
// smaller. `dense` is a plan by plan_store. Reads all of the source, with progress; `codec`, given if the
// compression is one, compresses all of it as well. Errors: those of the source and of the codec.
Result<Manifest> compressed_plan(const TensorSource& source, Manifest dense, bool quiet,
                                 const NeuronCodec* codec = nullptr);

// The same for a source without weights: bitmaps, each with the source's assumed share of zeros. Error:
// unsupported for a codec, whose output sizes cannot be predicted.
Result<Manifest> assumed_plan(const TensorSource& source, Manifest dense);

// Returns whether any site of a plan with measured neurons is compressed.
bool compresses(const Manifest& plan);

// Returns the error for a model that gains nothing from a compression, with a remedy. `tokenizer`: the file
// that the user named with the model, or empty.
Error compresses_nothing(std::string_view compression, const std::string& model, const std::string& tokenizer,
                         const ModelConfig& config);

// Returns the dense plan from which `plan` was made.
Manifest dense_plan(Manifest plan);

}  // namespace tierd
