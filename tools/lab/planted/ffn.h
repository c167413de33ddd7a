// The planted feed-forward network of one layer: thresholds over random pre-activations determine the active
// neurons, and a low-rank predictor sees most of each pre-activation. README.md has the recipe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "tools/lab/planted/layer_profile.h"
#include "tools/lab/planted/packed_matrix.h"

namespace tierd {

struct PlantedFfnShape {
  uint32_t d_model = 0;
  uint32_t d_ff = 0;
  uint32_t rank = 0;  // rank of the predictor, its constant feature included
};

// Everything but thresholds is computed on request; biases, which need all of up, only once. Any thread.
class PlantedFfn {
 public:
  // `profile` must outlive this object.
  PlantedFfn(const PlantedProfile& profile, const LayerProfile& layer_profile, PlantedFfnShape shape,
             uint64_t seed, uint32_t layer);

  // Returns A [rank - 1 x d_model], the matrix of the predictor's features of an input.
  PackedMatrix features() const;
  // Writes row `row` of A, of mean 0.
  void feature(uint32_t row, std::span<float> out) const;

  // Writes rows [first, first + count) of up, [count x d_model], from the matrix that features() returns.
  void up(const PackedMatrix& features, uint32_t first, uint32_t count, float* out) const;
  // Writes row `row` of down from column `first` on.
  void down(uint32_t row, uint32_t first, std::span<float> out) const;
  std::span<const float> up_bias(const PackedMatrix& features) const;    // [d_ff]
  std::span<const float> down_bias(const PackedMatrix& features) const;  // [d_model]

  // The predictor: score = b (a x), and a neuron is predicted if its score is above 0. Row `row` of a [rank x
  // d_model], row `neuron` of b [d_ff x rank].
  void predictor_a(uint32_t row, std::span<float> out) const;
  void predictor_b(const PackedMatrix& features, uint32_t neuron, std::span<float> out) const;

  const PlantedFfnShape& shape() const { return shape_; }

 private:
  // Vectors that need a pass over the whole of up.
  struct Sums {
    std::vector<float> up_bias;
    std::vector<float> down_bias;
    std::vector<float> thresholds;  // [d_ff] in units of x: theta times the norm of the row
  };
  const Sums& sums(const PackedMatrix& features) const;
  void direction(uint32_t neuron, std::span<float> out) const;

  const PlantedProfile& profile_;
  LayerProfile layer_profile_;
  PlantedFfnShape shape_;
  uint64_t seed_;
  uint32_t layer_;
  std::vector<float> thresholds_;  // theta [d_ff], in deviations of the pre-activation
  float down_step_;
  mutable std::once_flag summed_;
  mutable std::unique_ptr<const Sums> sums_;
};

// Returns the step of PlantedKernels::add_uniform that gives this deviation.
float uniform_step(double deviation);

}  // namespace tierd
