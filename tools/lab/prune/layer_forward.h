// Windows of the calibration text through one layer: the same arithmetic as core/model/reference, all tokens
// of a window at once. The tests hold one against the other.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/result.h"
#include "core/model/config.h"
#include "core/model/tensor_source.h"
#include "tools/lab/prune/layer_weights.h"
#include "tools/lab/prune/matrix_team.h"

namespace tierd {

// LayerForward is one dense layer, ready to compute. It copies the weights' matrices in the order of the
// kernels; biases and norms are those of `weights`, which stays and does not change meanwhile.
class LayerForward {
 public:
  LayerForward(const ModelConfig& config, LayerWeights& weights, MatrixTeam& team);

  // Called with what the readers of an input get, [tokens x width].
  using Observer = std::function<void(LayerInput, const TokenRows&)>;

  // Passes the hidden states x [tokens x d_model] of one window, from position 0 on, through the layer, in
  // place. One caller at a time.
  void run(TokenRows& x, const Observer& observer) const;

 private:
  TokenRows normalized(const NormWeights& norm, const TokenRows& x) const;
  TokenRows attended(const TokenRows& normed) const;                  // softmax(q k^T) v
  TokenRows activated(const TokenRows& normed) const;                 // act(gate x) * up x, or act(up x)
  void normalize_heads(const NormWeights& norm, TokenRows& x) const;  // in place
  void rotate(TokenRows& x) const;                                    // in place

  const ModelConfig& config_;
  const LayerWeights& weights_;
  MatrixTeam& team_;
  std::vector<float> frequencies_;  // [rotary_dim / 2]
  GroupedMatrix q_, k_, v_, o_, gate_, up_, down_;
};

// The hidden states with which a window's tokens enter the first layer, [tokens x d_model]: their rows of the
// embedding, and of learned positions. Only those rows are read. Errors: those of TensorSource::read.
Result<TokenRows> embed(const TensorSource& source, const std::vector<uint32_t>& tokens);

}  // namespace tierd
