// Models that nothing can be trained for.
#pragma once

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// Training expects one feed-forward network a layer. Error: unsupported, naming the model.
inline Status refuse_mixture(const TensorSource& source) {
  if (!source.config().is_mixture()) return {};
  return Error{Code::unsupported, source.path(), "a mixture of experts; tier-train takes models without"};
}

// Predictors learn which neurons give nothing, and without ReLU every neuron gives something: every label
// would say "active", and the ranking would be that of chance. Error: unsupported, naming the model.
inline Status refuse_without_relu(const TensorSource& source) {
  const Activation activation = source.config().activation;
  if (activation == Activation::relu || activation == Activation::relu_squared) return {};
  return Error{
      Code::unsupported, source.path(),
      "its networks are without ReLU, so that no neuron is ever off and there is nothing to predict; "
      "tierd --config configs/activeflow.toml leaves out inputs of such models instead, --config "
      "configs/hybrid.toml nothing"};
}

}  // namespace tierd
