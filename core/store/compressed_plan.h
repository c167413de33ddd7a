// The plan of a store whose neurons are compressed: how large they get is known when their values have been
// seen.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/model/layout/neuron_codec.h"
#include "core/model/tensor_source.h"
#include "core/store/manifest.h"

namespace tierd {

// The plan in which each site has the compression asked for (Manifest::compression) if that makes it smaller,
// from `dense` as plan_store makes it. Reads all of the source, with progress; a codec, which is given where
// that is the compression, compresses all of it as well. Errors: those of the source and of the codec.
Result<Manifest> compressed_plan(const TensorSource& source, Manifest dense, bool quiet,
                                 const NeuronCodec* codec = nullptr);

// The same of a source without weights, by the zeros that it is taken to have: as bitmaps of which each has
// as many. Error: unsupported, where a codec compresses, of which nobody knows what it would do.
Result<Manifest> assumed_plan(const TensorSource& source, Manifest dense);

// Whether any site of a plan whose neurons were measured is compressed.
bool compresses(const Manifest& plan);

// Says that a model gains nothing from a compression, and what to do instead. `tokenizer`: the file that the
// user named with the model, or empty.
Error compresses_nothing(std::string_view compression, const std::string& model, const std::string& tokenizer,
                         const ModelConfig& config);

// The plan that it was made from: all sites dense.
Manifest dense_plan(Manifest plan);

}  // namespace tierd
