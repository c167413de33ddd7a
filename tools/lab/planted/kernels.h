// The three loops that dominate the time of making a planted model. Every set gives the same bits as the
// scalar one: sums run over the depth in its order, each product fused into its sum.
#pragma once

#include <cstdint>
#include <span>

#include "tools/lab/planted/counter_random.h"
#include "tools/lab/planted/packed_matrix.h"

namespace tierd {

// Any thread.
struct PlantedKernels {
  // out[i] += step * (n - 32767.5), where n is the 16-bit number first + i of `key`: word (first + i) / 2,
  // its lower half first. So `step` is deviation * sqrt(12) / 2^16.
  void (*add_uniform)(RandomKey key, uint32_t first, float step, std::span<float> out);
  // out [rows x right.cols()] = left [rows x right.depth()] * right.
  void (*multiply)(const float* left, uint32_t rows, const PackedMatrix& right, float* out);
  // Rounds to nearest even, as core/model/layout/codec.h does. Both have one size.
  void (*to_f16)(std::span<const float> in, uint16_t* out);
};

const PlantedKernels& scalar_planted_kernels();
// Returns the fastest kernels that this processor can run.
const PlantedKernels& planted_kernels();

}  // namespace tierd
