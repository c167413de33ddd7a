// The weights of one layer in f32, read from wherever the model is, and who reads which input.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// The four inputs of a layer's operators: what q, k and v read; what o reads, the attended values; what gate
// and up read; what down reads. Operators that share an input share what calibration says of it.
enum class LayerInput : uint8_t { attention, attended, network, activated };
inline constexpr std::array kLayerInputs = {LayerInput::attention, LayerInput::attended, LayerInput::network,
                                            LayerInput::activated};

struct LinearWeights {
  std::string name;  // as TensorSource has it; empty where the model has no such operator
  uint32_t rows = 0;
  uint32_t cols = 0;
  std::vector<float> weight;  // [rows x cols]
  std::vector<float> bias;    // [rows], or empty
};

struct NormWeights {
  std::string name;
  std::vector<float> weight;  // [n]; empty where the model has no such norm
  std::vector<float> bias;    // [n], or empty
};

struct LayerWeights {
  NormWeights attn_norm, ffn_norm, q_norm, k_norm;
  LinearWeights q, k, v, o, gate, up, down;

  // Those that there are, each of [rows x width of the input].
  std::vector<LinearWeights*> readers(LayerInput input);
  uint32_t width(LayerInput input);
};

// Reads and decodes them: 4 bytes a parameter. Errors: those of TensorSource::read.
Result<LayerWeights> read_layer(const TensorSource& source, uint32_t layer);

// Names of the matrices of a layer, of which a dense model has no others.
std::vector<std::string> layer_matrices(const TensorSource& source, uint32_t layer);

}  // namespace tierd
