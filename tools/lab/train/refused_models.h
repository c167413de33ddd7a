// Checks that refuse models for which no predictor can be trained.
#pragma once

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// Refuses a mixture of experts: training expects one feed-forward network a layer. Error: unsupported, naming
// the model.
inline Status refuse_mixture(const TensorSource& source) {
  if (!source.config().is_mixture()) return {};
  return Error{Code::unsupported, source.path(), "is a mixture of experts; expected a model without experts"};
}

// Refuses a model without ReLU. Predictors learn which neurons add nothing, and without ReLU every neuron
// adds something: all labels would be "active", and the ranking would be random. Error: unsupported, naming
// the model.
inline Status refuse_without_relu(const TensorSource& source) {
  const Activation activation = source.config().activation;
  if (activation == Activation::relu || activation == Activation::relu_squared) return {};
  return Error{Code::unsupported, source.path(),
               "its networks have no ReLU, so every neuron fires and there is nothing to predict; run it "
               "with --config configs/activeflow.toml, which leaves out inputs instead, or with --config "
               "configs/hybrid.toml"};
}

}  // namespace tierd
