#include "tools/lab/planted/ffn.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tools/lab/planted/counter_random.h"
#include "tools/lab/planted/kernels.h"
#include "tools/lab/planted/parallel.h"

namespace tierd {
namespace {

constexpr uint32_t kFeatureRows = 64;  // of up: their directions and a panel of features fit in the cache

// Mean and variance of max(0, x - theta), x normal: a neuron's output in units of its row's norm.
double output_mean(double theta) {
  return normal_density(theta) - theta * normal_tail(theta);
}
double output_variance(double theta) {
  const double mean = output_mean(theta);
  return (1 + theta * theta) * normal_tail(theta) - theta * normal_density(theta) - mean * mean;
}

struct RowSums {
  double sum = 0;
  double norm = 0;  // of the row less its mean
};

RowSums sums_of_row(std::span<const float> row) {
  constexpr size_t kPartial = 8;  // independent sums, so that no addition waits for the one before
  double sums[kPartial] = {};
  double squares[kPartial] = {};
  for (size_t i = 0; i < row.size(); ++i) {
    sums[i % kPartial] += row[i];
    squares[i % kPartial] += double{row[i]} * row[i];
  }
  const double sum = std::accumulate(sums, sums + kPartial, 0.0);
  const double square = std::accumulate(squares, squares + kPartial, 0.0);
  return {sum, std::sqrt(square - sum * sum / static_cast<double>(row.size()))};
}

}  // namespace

float uniform_step(double deviation) {
  return static_cast<float>(deviation * std::sqrt(12.0) / 0x1p16);
}

PlantedFfn::PlantedFfn(const PlantedProfile& profile, const LayerProfile& layer_profile,
                       PlantedFfnShape shape, uint64_t seed, uint32_t layer)
    : profile_(profile),
      layer_profile_(layer_profile),
      shape_(shape),
      seed_(seed),
      layer_(layer),
      thresholds_(shape.d_ff) {
  fill_normal(random_key(seed_, layer_, Drawn::thresholds, 0), thresholds_);
  double variance = 0;
  for (float& theta : thresholds_) {
    theta = static_cast<float>(layer_profile_.mean + layer_profile_.spread * theta);
    variance += output_variance(theta);
  }
  down_step_ = uniform_step(std::sqrt(profile_.ffn_variance / variance));
}

PackedMatrix PlantedFfn::features() const {
  PackedMatrix packed(shape_.rank - 1, shape_.d_model);
  in_parallel(shape_.rank - 1, [&](uint32_t row) {
    std::vector<float> values(shape_.d_model);
    feature(row, values);
    packed.set_row(row, values);
  });
  return packed;
}

void PlantedFfn::feature(uint32_t row, std::span<float> out) const {
  fill_normal(random_key(seed_, layer_, Drawn::features, row), out);
  const double deviation = 1 / std::sqrt(static_cast<double>(out.size()));
  double mean = 0;
  for (const float value : out) mean += value;
  mean /= static_cast<double>(out.size());
  for (float& value : out) value = static_cast<float>((value - mean) * deviation);
}

// Draws V_i, of length sqrt(e).
void PlantedFfn::direction(uint32_t neuron, std::span<float> out) const {
  fill_normal(random_key(seed_, layer_, Drawn::directions, neuron), out);
  double squares = 0;
  for (const float value : out) squares += double{value} * value;
  const double scale = std::sqrt(layer_profile_.explained() / squares);
  for (float& value : out) value = static_cast<float>(value * scale);
}

void PlantedFfn::up(const PackedMatrix& features, uint32_t first, uint32_t count, float* out) const {
  const PlantedKernels& kernels = planted_kernels();
  const uint64_t depth = features.depth();
  const uint64_t d_model = shape_.d_model;
  const float step = uniform_step(layer_profile_.noise / std::sqrt(static_cast<double>(d_model)));
  std::vector<float> directions(std::min(count, kFeatureRows) * depth);
  for (uint32_t done = 0; done < count; done += kFeatureRows) {
    const uint32_t rows = std::min(kFeatureRows, count - done);
    float* block = out + done * d_model;
    for (uint32_t i = 0; i < rows; ++i) direction(first + done + i, {&directions[i * depth], depth});
    kernels.multiply(directions.data(), rows, features, block);
    for (uint32_t i = 0; i < rows; ++i) {
      kernels.add_uniform(random_key(seed_, layer_, Drawn::up_noise, first + done + i), 0, step,
                          {block + i * d_model, d_model});
    }
  }
}

void PlantedFfn::down(uint32_t row, uint32_t first, std::span<float> out) const {
  std::fill(out.begin(), out.end(), 0.0f);
  planted_kernels().add_uniform(random_key(seed_, layer_, Drawn::down, row), first, down_step_, out);
}

std::span<const float> PlantedFfn::up_bias(const PackedMatrix& features) const {
  return sums(features).up_bias;
}
std::span<const float> PlantedFfn::down_bias(const PackedMatrix& features) const {
  return sums(features).down_bias;
}

const PlantedFfn::Sums& PlantedFfn::sums(const PackedMatrix& features) const {
  std::call_once(summed_, [&] {
    auto made = std::make_unique<Sums>();
    made->up_bias.resize(shape_.d_ff);
    made->down_bias.resize(shape_.d_model);
    made->thresholds.resize(shape_.d_ff);
    std::vector<float> output_means(shape_.d_ff);
    in_parallel(static_cast<uint32_t>(divide_up(shape_.d_ff, kFeatureRows)), [&](uint32_t block) {
      const uint32_t first = block * kFeatureRows;
      const uint32_t count = std::min(kFeatureRows, shape_.d_ff - first);
      std::vector<float> rows(uint64_t{count} * shape_.d_model);
      up(features, first, count, rows.data());
      for (uint32_t i = 0; i < count; ++i) {
        const auto [sum, norm] =
            sums_of_row(std::span(rows).subspan(uint64_t{i} * shape_.d_model, shape_.d_model));
        const double threshold = thresholds_[first + i] * norm;
        made->thresholds[first + i] = static_cast<float>(threshold);
        // The preceding norm shifts every input by c.
        made->up_bias[first + i] = static_cast<float>(-threshold - profile_.norm_shift * sum);
        output_means[first + i] = static_cast<float>(norm * output_mean(thresholds_[first + i]));
      }
    });
    // The bias of down subtracts the neurons' mean output, which would shift every layer that follows.
    in_parallel(shape_.d_model, [&](uint32_t row) {
      std::vector<float> weights(shape_.d_ff);
      down(row, 0, weights);
      double sum = 0;
      for (uint32_t i = 0; i < shape_.d_ff; ++i) sum += double{weights[i]} * output_means[i];
      made->down_bias[row] = static_cast<float>(-sum);
    });
    sums_ = std::move(made);
  });
  return *sums_;
}

// The last feature is constant, because the sum of a normed input is c * d_model.
void PlantedFfn::predictor_a(uint32_t row, std::span<float> out) const {
  if (row + 1 < shape_.rank) return feature(row, out);
  std::fill(out.begin(), out.end(), static_cast<float>(1 / (profile_.norm_shift * shape_.d_model)));
}

void PlantedFfn::predictor_b(const PackedMatrix& features, uint32_t neuron, std::span<float> out) const {
  direction(neuron, out.first(shape_.rank - 1));
  out[shape_.rank - 1] = static_cast<float>(layer_profile_.margin - sums(features).thresholds[neuron]);
}

}  // namespace tierd
