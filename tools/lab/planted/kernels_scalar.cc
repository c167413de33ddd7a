#include <cmath>

#include "core/model/layout/codec.h"
#include "tools/lab/planted/kernels.h"

namespace tierd {
namespace {

void add_uniform(RandomKey key, uint32_t first, float step, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const auto number = static_cast<uint32_t>(first + i);
    const uint32_t word = random_word(key, number / 2);
    const auto half = static_cast<float>(number % 2 == 0 ? word & 0xffff : word >> 16);
    out[i] = std::fma(half - 32767.5f, step, out[i]);
  }
}

void multiply(const float* left, uint32_t rows, const PackedMatrix& right, float* out) {
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t col = 0; col < right.cols(); ++col) {
      const float* column = right.panel(col / kPanelCols * kPanelCols) + col % kPanelCols;
      float sum = 0;
      for (uint32_t k = 0; k < right.depth(); ++k)
        sum = std::fma(left[uint64_t{row} * right.depth() + k], column[uint64_t{k} * kPanelCols], sum);
      out[uint64_t{row} * right.cols() + col] = sum;
    }
  }
}

void to_f16(std::span<const float> in, uint16_t* out) {
  for (size_t i = 0; i < in.size(); ++i) out[i] = f32_to_f16(in[i]);
}

}  // namespace

const PlantedKernels& scalar_planted_kernels() {
  static constexpr PlantedKernels kKernels{add_uniform, multiply, to_f16};
  return kKernels;
}

}  // namespace tierd
