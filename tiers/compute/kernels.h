// The arithmetic on rows in the store's layout (core/model/layout/row_group.h), on bundles, on columns, and
// on activations.
//
// Rows. All kernels, gemv or gemm, SIMD or scalar, have one order of reduction, so that a row's bits depend
// on no batch, chunk, thread or neighbour. For each output row and token, columns are added by blocks of 32,
// in order; q and xq are the integers, d and dx the scales, of weights and activations:
//   floats, activations f32:       p = 0; for j in block: p = fma(w[j], x[j], p);
//                                  y = y + p
//   q8_0, q4_0, activations f32:   p = 0; for j in block: p = fma(float(q[j]), x[j], p);
//                                  y = fma(d, p, y)
//   other blocks, activations f32: as floats: w[j] is the value in f32, step and minimum included
//   blocks, activations int8:      for each 32 or 16 columns that share step and min (block_layout.h):
//                                  p = sum of q[j]*xq[j], s = sum of xq[j], integers;
//                                  y = fma(step*dx, float(p), y); of encodings with minima, then
//                                  y = fma(-min, dx*float(s), y)
// A last block of floats may be shorter. y starts at zero. All fused multiply-adds are fused. So a product of
// other blocks and f32 activations has the bits of the same weights stored in f32.
//
// Bundles: rows are in plain order and columns as in core/model/layout/column.h. A weight is its value in
// f32, scale included.
//   dots          sum[k][l] = fma(w[c], x[c], sum[k][l]) for c = 64 j + 16 k + l, j rising; then the four
//                 chains (0 + 1) + (2 + 3), then their lanes, l and l + 8 first
//   add_weighted  p = 0; for the columns in their order: p = fma(h[i], w[i][c], p);
//                 y = y + p
//
// Columns with int8 (add_weighted_int8): by blocks b of 32 outputs, for all columns of the call,
//   a[i] = h[i] * d[i][b];  m = max |a[i]|;  s = m / 127
//   k[i] = a[i] * (127 / m), rounded once, to nearest even
//   p = sum of k[i] * q[i][c] as an integer
//   y[c] = fma(s, float(p), y[c])
// If m is below 2^-100, s = 0 and k = 0; if m is not finite, s is NaN and k = 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/activation.h"
#include "core/model/layout/bundle.h"
#include "core/model/layout/column.h"
#include "core/model/layout/encoding.h"
#include "tiers/compute/bitmap.h"

namespace tierd {

// Activations of one or more tokens as int8 in blocks of 32: x[j] ~= scale[j/32] * q[j], scale = max|x|/127,
// rounded to nearest even. Lossy: a declared switch. `sum` of a block serves the unsigned weights' offset.
struct QuantizedRows {
  uint32_t rows = 0;
  uint32_t cols = 0;                          // multiple of 32
  std::vector<int8_t> q;                      // [rows x cols]
  std::vector<float> scale;                   // [rows x cols/32]
  std::vector<int32_t> sum;                   // [rows x cols/32]
  std::vector<int32_t> first_sum;             // [rows x cols/32], of the first 16 of each block
  void resize(uint32_t rows, uint32_t cols);  // keeps capacity
};

inline constexpr uint32_t kDotChains = 4;

// Columns that are added together, at most kPartialNeurons, of encoded_bytes(encoding, values) bytes each,
// and the columns of the next call (or none): kernels prefetch those, since the processor cannot predict
// addresses that are apart.
struct ColumnRun {
  Encoding encoding;
  uint32_t values;
  std::span<const std::byte* const> columns;
  std::span<const std::byte* const> next = {};
};

// The destination of blocks of q8_0 or q4_0, each in two parts: as in core/model/layout/column.h, or
// contiguous.
struct BlockPlaces {
  std::byte* scales;
  uint64_t scales_apart;  // bytes from one block's scale to the next one's
  std::byte* quants;
  uint64_t quants_apart;
};

// The score of a query and a key: scale times their product, and if `cap` is not 0, cap * tanh(it / cap).
struct ScoreShape {
  float scale = 1;
  float cap = 0;
  float sink = -std::numeric_limits<float>::infinity();  // a score without a position or a value
};

// One implementation of all kernels for an instruction set. Stateless, reentrant, any thread.
struct ComputeKernels {
  std::string_view name;  // "avx512-vnni", "avx2", "scalar"

  // y[t*ldy + r] = sum over c of W[r, c] * x[t*ldx + c] for r in [0, groups*16), t in [0, tokens).
  // `weights`: groups * group_bytes(e, cols) bytes, 64 B aligned. Any e; activations f32.
  void (*matmul)(Encoding e, const std::byte* weights, uint32_t groups, uint32_t cols, const float* x,
                 size_t ldx, uint32_t tokens, float* y, size_t ldy);
  // The same for the block encodings with int8 activations, tokens [first, first + tokens) of x.
  void (*matmul_int8)(Encoding e, const std::byte* weights, uint32_t groups, uint32_t cols,
                      const QuantizedRows& x, uint32_t first, uint32_t tokens, float* y, size_t ldy);
  // Expands elements as the bits say, 8 a byte from `bits` on. See ExpandBitmap.
  ExpandBitmap expand_bitmap;
  // matmul of at most kFewTokens tokens straight from a bitmap of the groups: bits and values begin with the
  // first group's. Returns the address behind the last value taken, or nullptr if there are too few values.
  const std::byte* (*gemv_bitmap)(Encoding e, const std::byte* bits, BitmapValues values, uint32_t groups,
                                  uint32_t cols, const float* x, size_t ldx, uint32_t tokens, float* y,
                                  size_t ldy);
  // y[t*ldy + i] = sum over c of rows[i][c] * x[t*ldx + c]. A row is encoded_bytes(e, cols) bytes at any
  // address. This and the kernels of columns take the encodings that have columns (has_columns).
  void (*dots)(Encoding e, std::span<const std::byte* const> rows, uint32_t cols, const float* x, size_t ldx,
               uint32_t tokens, float* y, size_t ldy);
  // y[t*ldy + c] += sum over i of h[t*ldh + i] * columns[i][c] for c in [first, last). `first` is a multiple
  // of 32; `last` too, or it is the end of the columns.
  void (*add_weighted)(const ColumnRun& run, uint32_t first, uint32_t last, const float* h, size_t ldh,
                       uint32_t tokens, float* y, size_t ldy);
  // The same for the block encodings q8_0 and q4_0, with factors as int8. If `squares` is not null, adds the
  // squared error of factors to squares[0] and their squares to squares[1], as a sample: only for the strip
  // that contains `first`.
  void (*add_weighted_int8)(const ColumnRun& run, uint32_t first, uint32_t last, const float* h, size_t ldh,
                            uint32_t tokens, float* y, size_t ldy, double* squares);
  // Quantizes row `row` of `x` (cols values) into out.{q, scale, sum} at `row`. If `squares` is not null,
  // adds the squared error to squares[0] and the squared magnitude to squares[1].
  void (*quantize_row)(const float* x, uint32_t row, QuantizedRows& out, double* squares);

  // Weights: encodes blocks of 32 values of f32, f16 or bf16, contiguous from `in` on, as q8_0 or q4_0, with
  // the bits of `encode` (core/model/layout/codec.h). No alignment is required.
  void (*encode_blocks)(Encoding from, const std::byte* in, uint32_t blocks, Encoding to,
                        const BlockPlaces& out);

  // Activations; n values, no alignment required.
  void (*rms_norm)(const float* x, const float* weight, float eps, uint32_t n, float* out);
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, uint32_t n,
                     float* out);
  void (*add)(float* x, const float* y, uint32_t n);  // x += y
  // out = f(x) * factor; factor nullptr: out = f(x).
  void (*activate)(Activation f, float threshold, const float* x, const float* factor, uint32_t n,
                   float* out);
  void (*f32_to_f16)(const float* x, uint32_t n, uint16_t* out);
  // Attention of one query head over positions [first, last) of a KV cache in f16 or f32:
  // out = softmax(score of q k^T) v. k and v: position p at k + p*stride (elements). `scratch`: last - first
  // floats.
  void (*attend_f16)(const float* q, const uint16_t* k, const uint16_t* v, size_t stride, uint32_t first,
                     uint32_t last, uint32_t head_dim, const ScoreShape& score, float* scratch, float* out);
  void (*attend_f32)(const float* q, const float* k, const float* v, size_t stride, uint32_t first,
                     uint32_t last, uint32_t head_dim, const ScoreShape& score, float* scratch, float* out);
};

// Returns the best set for this processor, chosen once; or the set of a name ("scalar", "avx2",
// "avx512-vnni"), nullptr if this processor cannot run it. No environment variable changes the choice.
const ComputeKernels& best_kernels();
const ComputeKernels* kernels_by_name(std::string_view name);
// Returns the set that `compute.kernels` names; "auto": the best. Error: unsupported, naming that key.
Result<const ComputeKernels*> choose_kernels(const std::string& name);
std::span<const std::string_view> kernel_names();  // the sets that this processor can run, best first

}  // namespace tierd
