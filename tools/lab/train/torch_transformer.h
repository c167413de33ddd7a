// A transformer in libtorch, as core/model/reference.h has it in loops, whose operators may have masked
// inputs. Part of the trainer's shared object.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "core/model/config.h"

namespace tierd {

using TorchWeights = std::map<std::string, at::Tensor>;  // by our names: matrices [out x in], vectors [n]

// In the inputs of q, k and v, of o, of gate and up, and of down, the share `sparsity` of smallest magnitude
// is left out, for each token by itself.
struct Mask {
  double sparsity = 0;
  bool straight_through = true;  // gradients pass as if nothing were left out (ActiveFlow, equation 12)
};

class TorchTransformer {
 public:
  // `frequencies` f32 [rotary_dim / 2], on the device of the weights.
  TorchTransformer(ModelConfig config, at::Tensor frequencies)
      : config_(std::move(config)), frequencies_(std::move(frequencies)) {}

  // Returns the logits [tokens x vocab] after each of `tokens` (i64 [n], from position 0).
  at::Tensor forward(const TorchWeights& weights, const at::Tensor& tokens, const Mask& mask) const;

 private:
  struct Pass;  // one call of forward: the weights and the mask

  ModelConfig config_;
  at::Tensor frequencies_;
};

}  // namespace tierd
