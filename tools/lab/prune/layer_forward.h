// Computes windows of the calibration text through one layer, with the arithmetic of tests/model/reference,
// all tokens of a window at once. The tests compare the two.
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

// One dense layer, ready to compute. It copies the weights' matrices in the order of the kernels and uses the
// biases and norms of `weights`, which must stay unchanged.
class LayerForward {
 public:
  LayerForward(const ModelConfig& config, LayerWeights& weights, MatrixTeam& team);

  // Called with each input that operators read, [tokens x width].
  using Observer = std::function<void(LayerInput, const TokenRows&)>;

  // Computes the hidden states x [tokens x d_model] of one window, from position 0 on, through the layer, in
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

// Returns the hidden states of a window's tokens before the first layer, [tokens x d_model]: their rows of
// the embedding, and of learned positions. Reads only those rows. Errors: those of TensorSource::read.
Result<TokenRows> embed(const TensorSource& source, const std::vector<uint32_t>& tokens);

}  // namespace tierd
