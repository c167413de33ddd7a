// The weights of one layer in f32, read from any source, and the operators that read each input.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// The four inputs of a layer's operators: of q, k and v; of o, the attended values; of gate and up; of down.
// Operators that share an input share its statistics.
enum class LayerInput : uint8_t { attention, attended, network, activated };
inline constexpr std::array kLayerInputs = {LayerInput::attention, LayerInput::attended, LayerInput::network,
                                            LayerInput::activated};

struct LinearWeights {
  std::string name;  // as in TensorSource; empty if the model has no such operator
  uint32_t rows = 0;
  uint32_t cols = 0;
  std::vector<float> weight;  // [rows x cols]
  std::vector<float> bias;    // [rows], or empty
};

struct NormWeights {
  std::string name;
  std::vector<float> weight;  // [n]; empty if the model has no such norm
  std::vector<float> bias;    // [n], or empty
};

struct LayerWeights {
  NormWeights attn_norm, ffn_norm, q_norm, k_norm;
  LinearWeights q, k, v, o, gate, up, down;

  // Returns the existing operators that read the input, each of [rows x width of the input].
  std::vector<LinearWeights*> readers(LayerInput input);
  uint32_t width(LayerInput input);
};

// Reads and decodes a layer: 4 bytes a parameter. Errors: those of TensorSource::read.
Result<LayerWeights> read_layer(const TensorSource& source, uint32_t layer);

// Returns the names of a layer's matrices: all that a dense model has.
std::vector<std::string> layer_matrices(const TensorSource& source, uint32_t layer);

}  // namespace tierd
