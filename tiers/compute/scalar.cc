// The scalar twin: one loop a formula. It defines the results; the SIMD sets are tested against it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <vector>

#include "core/base/check.h"
#include "core/model/layout/block_layout.h"
#include "core/model/layout/blocks.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/column.h"
#include "tiers/compute/columns.h"
#include "tiers/compute/kernel_sets.h"

namespace tierd {
namespace {

uint16_t load_u16(const std::byte* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// A row of a block encoding: its integers, and the step and minimum of each 16 or 32.
struct BlockRow {
  BlockRow(Encoding e, uint32_t row, std::span<const std::byte> group, uint32_t cols)
      : scaled(scaled_values(e)) {
    std::vector<std::byte> plain(encoded_bytes(e, cols));
    unpack_row_bytes(e, row, group, plain);
    for (uint32_t c = 0; c < cols; ++c) {
      const std::byte* block = &plain[encoded_bytes(e, c - c % block_values(e))];
      values.push_back(value_in_block(e, block, c % block_values(e)));
      if (c % scaled == 0) steps.push_back(step_in_block(e, block, c % block_values(e)));
    }
  }

  uint32_t scaled;  // values that share a step
  std::vector<int> values;
  std::vector<StepAndMin> steps;
};

float dot_values(std::span<const float> w, const float* x) {
  float y = 0;
  for (size_t c = 0; c < w.size(); c += kQuantBlock) {
    float p = 0;
    for (size_t j = c; j < std::min(c + kQuantBlock, w.size()); ++j) p = std::fma(w[j], x[j], p);
    y = y + p;
  }
  return y;
}

// For q8_0 and q4_0, whose products are scaled instead of the weights.
float dot_blocks(const BlockRow& row, const float* x) {
  float y = 0;
  for (size_t c = 0; c < row.values.size(); c += kQuantBlock) {
    float p = 0;
    for (size_t j = c; j < c + kQuantBlock; ++j) p = std::fma(static_cast<float>(row.values[j]), x[j], p);
    y = std::fma(row.steps[c / kQuantBlock].step, p, y);
  }
  return y;
}

void matmul(Encoding e, const std::byte* weights, uint32_t groups, uint32_t cols, const float* x, size_t ldx,
            uint32_t tokens, float* y, size_t ldy) {
  TIERD_CHECK(cols % block_values(e) == 0);
  const bool scales_products = e == Encoding::q8_0 || e == Encoding::q4_0;
  std::vector<float> values(cols);
  for (uint32_t r = 0; r < groups * kGroupRows; ++r) {
    const std::span group(weights + r / kGroupRows * group_bytes(e, cols), group_bytes(e, cols));
    if (scales_products) {
      const BlockRow row(e, r % kGroupRows, group, cols);
      for (uint32_t t = 0; t < tokens; ++t) y[t * ldy + r] = dot_blocks(row, x + t * ldx);
    } else {
      unpack_row(e, r % kGroupRows, group, values);
      for (uint32_t t = 0; t < tokens; ++t) y[t * ldy + r] = dot_values(values, x + t * ldx);
    }
  }
}

const std::byte* gemv_bitmap(Encoding e, const std::byte* bits, BitmapValues values, uint32_t groups,
                             uint32_t cols, const float* x, size_t ldx, uint32_t tokens, float* y,
                             size_t ldy) {
  const Bitmap bitmap = *Bitmap::of(e, true);
  std::vector<std::byte> dense(groups * group_bytes(e, cols));
  values.at = expand_bitmap_plainly(bitmap, bits, values, dense.size() / bitmap.element_bytes, dense.data());
  if (values.at != nullptr) matmul(e, dense.data(), groups, cols, x, ldx, tokens, y, ldy);
  return values.at;
}

// The quantized values of one token.
struct Int8Row {
  const int8_t* q;
  const float* scale;
};

float dot_int8(Encoding e, const BlockRow& row, const Int8Row& x) {
  float sum = 0;
  for (size_t c = 0; c < row.values.size(); c += row.scaled) {
    const StepAndMin& of = row.steps[c / row.scaled];
    const float dx = x.scale[c / kQuantBlock];
    int p = 0;
    int s = 0;
    for (size_t j = c; j < c + row.scaled; ++j) {
      p += row.values[j] * x.q[j];
      s += x.q[j];
    }
    sum = std::fma(of.step * dx, static_cast<float>(p), sum);
    if (has_min(e)) sum = std::fma(-of.min, dx * static_cast<float>(s), sum);
  }
  return sum;
}

void matmul_int8(Encoding e, const std::byte* weights, uint32_t groups, uint32_t cols, const QuantizedRows& x,
                 uint32_t first, uint32_t tokens, float* y, size_t ldy) {
  TIERD_CHECK(is_quantized(e) && cols % block_values(e) == 0);
  TIERD_CHECK(x.cols == cols && first + tokens <= x.rows);
  for (uint32_t r = 0; r < groups * kGroupRows; ++r) {
    const std::byte* group = weights + r / kGroupRows * group_bytes(e, cols);
    const BlockRow row(e, r % kGroupRows, {group, group_bytes(e, cols)}, cols);
    for (uint32_t t = 0; t < tokens; ++t) {
      const size_t token = first + t;
      const Int8Row xt = {x.q.data() + token * cols, x.scale.data() + token * (cols / kQuantBlock)};
      y[t * ldy + r] = dot_int8(e, row, xt);
    }
  }
}

void dots(Encoding e, std::span<const std::byte* const> rows, uint32_t cols, const float* x, size_t ldx,
          uint32_t tokens, float* y, size_t ldy) {
  std::vector<float> row(cols);
  for (size_t i = 0; i < rows.size(); ++i) {
    decode(e, {rows[i], encoded_bytes(e, cols)}, row);
    for (uint32_t t = 0; t < tokens; ++t) {
      double sum = 0;
      for (uint32_t c = 0; c < cols; ++c) sum += double{row[c]} * x[t * ldx + c];
      y[t * ldy + i] = static_cast<float>(sum);
    }
  }
}

void add_weighted(const ColumnRun& run, uint32_t first, uint32_t last, const float* h, size_t ldh,
                  uint32_t tokens, float* y, size_t ldy) {
  const size_t n = run.values;
  std::vector<float> decoded(run.columns.size() * n);
  for (size_t i = 0; i < run.columns.size(); ++i)
    decode_column(run.encoding, {run.columns[i], encoded_bytes(run.encoding, n)}, {&decoded[i * n], n});
  for (uint32_t t = 0; t < tokens; ++t) {
    for (uint32_t c = first; c < last; ++c) {
      float p = 0;
      for (size_t i = 0; i < run.columns.size(); ++i) p = std::fma(h[t * ldh + i], decoded[i * n + c], p);
      y[t * ldy + c] += p;
    }
  }
}

void add_weighted_int8(const ColumnRun& run, uint32_t first, uint32_t last, const float* h, size_t ldh,
                       uint32_t tokens, float* y, size_t ldy, double* squares) {
  const Encoding e = run.encoding;
  const std::span<const std::byte* const> columns = run.columns;
  constexpr uint32_t kStrip = kStripBlocks * kQuantBlock;
  for (uint32_t t = 0; t < tokens; ++t) {
    for (uint32_t c = first; c < last; c += kQuantBlock) {
      const BlockPlace place = place_in_column(e, run.values / kQuantBlock, c / kQuantBlock);
      std::vector<float> factors;
      float greatest = 0;
      bool finite = true;
      for (size_t i = 0; i < columns.size(); ++i) {
        factors.push_back(h[t * ldh + i] * f16_to_f32(load_u16(columns[i] + place.scale)));
        finite &= std::isfinite(factors.back());
        greatest = std::max(greatest, std::fabs(factors.back()));
      }
      const bool some = finite && greatest >= kLeastFactor;
      const float scale = !finite ? std::numeric_limits<float>::quiet_NaN() : some ? greatest / 127.0f : 0;
      const float inverse = some ? 127.0f / greatest : 0;
      int32_t sums[kQuantBlock] = {};
      for (size_t i = 0; i < columns.size() && some; ++i) {
        const auto factor = static_cast<int32_t>(std::nearbyint(double{factors[i]} * inverse));
        const auto* stored = reinterpret_cast<const uint8_t*>(columns[i] + place.quants);
        for (uint32_t j = 0; j < kQuantBlock; ++j) {
          const int32_t weight = e == Encoding::q8_0   ? static_cast<int8_t>(stored[j])
                                 : j < kQuantBlock / 2 ? (stored[j] & 15) - 8
                                                       : (stored[j - kQuantBlock / 2] >> 4) - 8;
          sums[j] += factor * weight;
        }
        if (squares == nullptr || c / kStrip != first / kStrip) continue;
        const double error = double{factors[i]} - double{scale} * factor;
        squares[0] += error * error;
        squares[1] += double{factors[i]} * factors[i];
      }
      for (uint32_t j = 0; j < std::min(kQuantBlock, last - c); ++j) {
        float& out = y[t * ldy + c + j];
        out = std::fma(scale, static_cast<float>(sums[j]), out);
      }
    }
  }
}

void quantize_row(const float* x, uint32_t row, QuantizedRows& out, double* squares) {
  TIERD_CHECK(row < out.rows);
  const uint32_t blocks = out.cols / kQuantBlock;
  for (uint32_t b = 0; b < blocks; ++b) {
    const float* in = x + b * kQuantBlock;
    float largest = 0;
    bool nan = false;
    for (uint32_t j = 0; j < kQuantBlock; ++j) {
      largest = std::max(largest, std::fabs(in[j]));
      nan |= std::isnan(in[j]);
    }
    // A NaN must reach the result, so it becomes the scale of its block.
    const float scale = nan ? std::numeric_limits<float>::quiet_NaN() : largest / 127.0f;
    int8_t* q = out.q.data() + size_t{row} * out.cols + b * kQuantBlock;
    int32_t sum = 0;
    for (uint32_t j = 0; j < kQuantBlock; ++j) {
      if (j == kQuantBlock / 2) out.first_sum[size_t{row} * blocks + b] = sum;
      // The bounds matter if the scale is zero, a rounded denormal or not finite.
      const float ratio = scale == 0 ? 0 : in[j] / scale;
      q[j] = static_cast<int8_t>(
          std::nearbyint(std::isnan(ratio) ? 127.0f : std::clamp(ratio, -127.0f, 127.0f)));
      sum += q[j];
    }
    out.scale[size_t{row} * blocks + b] = scale;
    out.sum[size_t{row} * blocks + b] = sum;
  }
  if (squares != nullptr) add_squares(x, row, out, squares);
}

void rms_norm(const float* x, const float* weight, float eps, uint32_t n, float* out) {
  double squares = 0;
  for (uint32_t i = 0; i < n; ++i) squares += double{x[i]} * x[i];
  const auto scale = static_cast<float>(1.0 / std::sqrt(squares / n + eps));
  for (uint32_t i = 0; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, uint32_t n, float* out) {
  double mean = 0;
  for (uint32_t i = 0; i < n; ++i) mean += x[i];
  mean /= n;
  double squares = 0;
  for (uint32_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double scale = 1.0 / std::sqrt(squares / n + eps);
  for (uint32_t i = 0; i < n; ++i) {
    out[i] = static_cast<float>((x[i] - mean) * scale * weight[i] + bias[i]);
  }
}

void add(float* x, const float* y, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) x[i] += y[i];
}

// The gate's part of swiglu_oai, see Activation, and the factor that the up projection becomes.
constexpr float kSwigluGain = 1.702F;
float clamped_gate(float threshold, float x) {
  const float m = std::min(x, threshold);
  return m / (1 + std::exp(-kSwigluGain * m));
}
float clamped_factor(float threshold, float up) {
  return 1 + std::clamp(up, -threshold, threshold);
}

float activation(Activation f, float threshold, float x) {
  switch (f) {
    case Activation::silu:
      return x / (1.0f + std::exp(-x));
    case Activation::relu:
      return x > threshold ? x : 0.0f;
    case Activation::relu_squared:
      return x > 0 ? x * x : 0.0f;
    case Activation::gelu:
      return 0.5f * x * (1.0f + std::erf(x / std::numbers::sqrt2_v<float>));
    case Activation::gelu_tanh: {
      const double scale = std::sqrt(2 * std::numbers::inv_pi);
      const double wide = x;
      return static_cast<float>(0.5 * wide * (1 + std::tanh(scale * (wide + 0.044715 * wide * wide * wide))));
    }
    case Activation::swiglu_oai:
      return clamped_gate(threshold, x);
  }
  return x;
}

void activate(Activation f, float threshold, const float* x, const float* factor, uint32_t n, float* out) {
  for (uint32_t i = 0; i < n; ++i) {
    float times = factor == nullptr ? 1.0F : factor[i];
    if (f == Activation::swiglu_oai) times = clamped_factor(threshold, times);
    out[i] = activation(f, threshold, x[i]) * times;
  }
}

void convert_f32_to_f16(const float* x, uint32_t n, uint16_t* out) {
  for (uint32_t i = 0; i < n; ++i) out[i] = f32_to_f16(x[i]);
}

float to_f32(uint16_t half) {
  return f16_to_f32(half);
}
float to_f32(float value) {
  return value;
}

template <class T>
void attend(const float* q, const T* k, const T* v, size_t stride, uint32_t first, uint32_t last,
            uint32_t head_dim, const ScoreShape& score, float* scratch, float* out) {
  std::fill_n(out, head_dim, 0.0f);
  if (first == last) return;
  float largest = score.sink;
  for (uint32_t p = first; p < last; ++p) {
    double dot = 0;
    for (uint32_t i = 0; i < head_dim; ++i) dot += double{q[i]} * to_f32(k[p * stride + i]);
    scratch[p - first] = static_cast<float>(dot) * score.scale;
    if (score.cap != 0) scratch[p - first] = score.cap * std::tanh(scratch[p - first] / score.cap);
    largest = std::max(largest, scratch[p - first]);
  }
  double total = std::exp(score.sink - largest);
  for (uint32_t p = first; p < last; ++p) {
    scratch[p - first] = std::exp(scratch[p - first] - largest);
    total += scratch[p - first];
  }
  for (uint32_t i = 0; i < head_dim; ++i) {
    double sum = 0;
    for (uint32_t p = first; p < last; ++p) sum += double{scratch[p - first]} * to_f32(v[p * stride + i]);
    out[i] = static_cast<float>(sum / total);
  }
}

void encode_blocks(Encoding from, const std::byte* in, uint32_t blocks, Encoding to, const BlockPlaces& out) {
  float values[kQuantBlock];
  std::byte block[block_bytes(Encoding::q8_0)];
  for (uint32_t b = 0; b < blocks; ++b) {
    const uint64_t bytes = encoded_bytes(from, kQuantBlock);
    decode(from, {in + b * bytes, bytes}, values);
    encode(to, values, {block, block_bytes(to)});
    std::memcpy(out.scales + b * out.scales_apart, block, kScaleBytes);
    std::memcpy(out.quants + b * out.quants_apart, block + kScaleBytes, quant_bytes(to));
  }
}

}  // namespace

void add_squares(const float* x, uint32_t row, const QuantizedRows& quantized, double* squares) {
  const int8_t* q = quantized.q.data() + size_t{row} * quantized.cols;
  const float* scale = quantized.scale.data() + size_t{row} * (quantized.cols / kQuantBlock);
  for (uint32_t c = 0; c < quantized.cols; ++c) {
    const double error = double{x[c]} - double{scale[c / kQuantBlock]} * q[c];
    squares[0] += error * error;
    squares[1] += double{x[c]} * x[c];
  }
}

const ComputeKernels& scalar_kernels() {
  static constexpr ComputeKernels kKernels = {
      .name = "scalar",
      .matmul = matmul,
      .matmul_int8 = matmul_int8,
      .expand_bitmap = expand_bitmap_plainly,
      .gemv_bitmap = gemv_bitmap,
      .dots = dots,
      .add_weighted = add_weighted,
      .add_weighted_int8 = add_weighted_int8,
      .quantize_row = quantize_row,
      .encode_blocks = encode_blocks,
      .rms_norm = rms_norm,
      .layer_norm = layer_norm,
      .add = add,
      .activate = activate,
      .f32_to_f16 = convert_f32_to_f16,
      .attend_f16 = attend<uint16_t>,
      .attend_f32 = attend<float>,
  };
  return kKernels;
}

}  // namespace tierd
