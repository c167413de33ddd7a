#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "core/base/align.h"
#include "core/base/random.h"
#include "core/model/layout/block_layout.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/row_group.h"
#include "tests/compute/kernel_sets_under_test.h"

namespace tierd {
namespace {

// Rounds `cols` up to whole blocks.
uint32_t in_blocks(Encoding e, uint32_t cols) {
  return static_cast<uint32_t>(align_up(cols, block_values(e)));
}
constexpr float kUntouchedOutput = -12345.0f;

// Row groups aligned to 64 bytes, as the kernels require.
class Weights {
 public:
  Weights(Encoding encoding, uint32_t groups, uint32_t cols)
      : encoding_(encoding), groups_(groups), cols_(cols), bytes_(groups * group_bytes(encoding, cols)) {
    lines_.resize((bytes_ + sizeof(Line) - 1) / sizeof(Line));
  }
  static Weights random(Encoding e, uint32_t groups, uint32_t cols, Random& random, float magnitude = 1) {
    Weights w(e, groups, cols);
    std::vector<float> rows(size_t{kGroupRows} * cols);
    std::vector<std::byte> plain(encoded_bytes(e, rows.size()));
    for (uint32_t g = 0; g < groups; ++g) {
      for (auto& v : rows) v = magnitude * random.symmetric();
      encode(e, rows, plain);
      pack_row_group(e, kGroupRows, cols, plain, w.group(g));
    }
    return w;
  }
  // Returns random bytes with finite scales: they reach every value that the encoding can hold.
  static Weights any_bytes(Encoding e, uint32_t groups, uint32_t cols, Random& random) {
    Weights w(e, groups, cols);
    for (size_t i = 0; i < w.bytes_; ++i) w.bytes()[i] = static_cast<std::byte>(random.below(256));
    for (size_t block = 0; block < w.bytes_; block += kGroupRows * block_bytes(e)) {
      if (e == Encoding::mxfp4) {
        for (uint32_t r = 0; r < kGroupRows; ++r)
          w.bytes()[block + r] = static_cast<std::byte>(random.below(253));
        continue;
      }
      const uint32_t factors = has_min(e) ? 2 : 1;
      for (uint32_t r = 0; r < factors * kGroupRows; ++r) {
        const auto scale = static_cast<uint16_t>(random.below(0x7c00) | random.below(2) << 15);
        std::memcpy(w.bytes() + block + 2 * r, &scale, sizeof scale);
      }
    }
    return w;
  }

  const std::byte* get() const { return reinterpret_cast<const std::byte*>(lines_.data()); }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(lines_.data()); }
  size_t size() const { return bytes_; }
  std::span<std::byte> group(uint32_t g) {
    return {bytes() + g * group_bytes(encoding_, cols_), group_bytes(encoding_, cols_)};
  }
  const std::byte* group(uint32_t g) const { return get() + g * group_bytes(encoding_, cols_); }
  Encoding encoding() const { return encoding_; }
  uint32_t groups() const { return groups_; }
  uint32_t cols() const { return cols_; }
  uint32_t rows() const { return groups_ * kGroupRows; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  Encoding encoding_;
  uint32_t groups_, cols_;
  size_t bytes_;
  std::vector<Line> lines_;
};

// The activations of some tokens, in both forms.
struct Activations {
  Activations(uint32_t tokens_, uint32_t cols, size_t ldx_) : tokens(tokens_), ldx(ldx_), x(tokens_ * ldx_) {
    if (cols % kQuantBlock == 0) quantized.resize(tokens, cols);
  }
  void quantize() {
    for (uint32_t t = 0; t < tokens; ++t) scalar().quantize_row(x.data() + t * ldx, t, quantized, nullptr);
  }
  static Activations random(uint32_t tokens, uint32_t cols, Random& random, float magnitude = 1,
                            size_t pad = 0) {
    Activations a(tokens, cols, cols + pad);
    for (auto& v : a.x) v = magnitude * random.symmetric();
    if (cols % kQuantBlock == 0) a.quantize();
    return a;
  }
  uint32_t tokens;
  size_t ldx;
  std::vector<float> x;
  QuantizedRows quantized;
};

struct Output {
  Output(uint32_t tokens, size_t ldy_) : ldy(ldy_), y(tokens * ldy_, kUntouchedOutput) {}
  size_t ldy;
  std::vector<float> y;
};

// Compares bits, so that zeros keep their sign; any NaN equals any other.
void expect_same_bits(const Output& want, const Output& got, const char* what) {
  ASSERT_EQ(want.y.size(), got.y.size());
  for (size_t i = 0; i < want.y.size(); ++i) {
    if (std::isnan(want.y[i]) && std::isnan(got.y[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(want.y[i]), std::bit_cast<uint32_t>(got.y[i]))
        << what << ": token " << i / want.ldy << " row " << i % want.ldy << ": " << want.y[i] << " and "
        << got.y[i];
  }
}

Output run(const ComputeKernels& kernels, const Weights& w, const Activations& a, size_t pad = 0) {
  Output out(a.tokens, w.rows() + pad);
  kernels.matmul(w.encoding(), w.get(), w.groups(), w.cols(), a.x.data(), a.ldx, a.tokens, out.y.data(),
                 out.ldy);
  return out;
}
Output run_int8(const ComputeKernels& kernels, const Weights& w, const Activations& a, size_t pad = 0) {
  Output out(a.tokens, w.rows() + pad);
  kernels.matmul_int8(w.encoding(), w.get(), w.groups(), w.cols(), a.quantized, 0, a.tokens, out.y.data(),
                      out.ldy);
  return out;
}

void expect_twins(std::span<const ComputeKernels* const> sets, const Weights& w, const Activations& a,
                  size_t pad = 0) {
  const std::string what = std::string(name(w.encoding())) + " groups " + std::to_string(w.groups()) +
                           " cols " + std::to_string(w.cols()) + " tokens " + std::to_string(a.tokens);
  const Output twin = run(scalar(), w, a, pad);
  for (const ComputeKernels* kernels : sets) expect_same_bits(twin, run(*kernels, w, a, pad), what.c_str());
  if (!is_quantized(w.encoding())) return;
  const Output int8_twin = run_int8(scalar(), w, a, pad);
  for (const ComputeKernels* kernels : sets)
    expect_same_bits(int8_twin, run_int8(*kernels, w, a, pad), (what + " int8").c_str());
}
void expect_twin(const ComputeKernels& kernels, const Weights& w, const Activations& a, size_t pad = 0) {
  const ComputeKernels* const one = &kernels;
  expect_twins({&one, 1}, w, a, pad);
}

class Matmul : public KernelSet {};
TIERD_ALL_KERNEL_SETS(Matmul);

// The scalar twin takes most of the time, so it runs once a shape for all instruction sets, and on fewer
// shapes with long rows, whose blocks are all alike.
TEST(MatmulTwins, EqualScalarBitForBitInEveryShape) {
  std::vector<const ComputeKernels*> sets;
  for (const std::string_view set : simd_sets()) sets.push_back(kernels_by_name(set));
  Random random(1);
  for (const Encoding e : kAllEncodings) {
    for (const uint32_t cols : {32u, 64u, 352u, 7u, 172u, 1u, 256u, 1280u}) {
      if (cols % block_values(e) != 0) continue;
      const bool is_long = cols > 352;
      for (uint32_t groups = 1; groups <= 5; groups += is_long ? 2 : 1) {
        const auto w = Weights::random(e, groups, cols, random);
        for (const uint32_t tokens : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 12u, 13u, 18u, 25u, 33u}) {
          if (is_long && tokens > 7) continue;
          expect_twins(sets, w, Activations::random(tokens, cols, random));
        }
      }
    }
  }
}

TEST_P(Matmul, EqualsScalarOverSeveralPanelsAndStrips) {
  Random random(2);
  for (const Encoding e : kAllEncodings) {
    const uint32_t two_panels = in_blocks(e, 2144);  // two panels of int8, more of floats, and a rest
    const auto wide = Weights::random(e, 3, two_panels, random);
    expect_twin(kernels(), wide, Activations::random(17, two_panels, random));
    const auto tall = Weights::random(e, 19, in_blocks(e, 64), random);  // two strips of groups and a rest
    expect_twin(kernels(), tall, Activations::random(7, tall.cols(), random));
    const auto small = Weights::random(e, 1, in_blocks(e, 32), random);  // several strips of tokens
    expect_twin(kernels(), small, Activations::random(301, small.cols(), random));
  }
}

TEST_P(Matmul, RespectsStridesAndLeavesTheRestAlone) {
  Random random(3);
  for (const Encoding e : kAllEncodings) {
    const auto w = Weights::random(e, 3, in_blocks(e, 96), random);
    for (const uint32_t tokens : {1u, 3u, 20u}) {
      const auto a = Activations::random(tokens, w.cols(), random, 1, 5);
      expect_twin(kernels(), w, a, 3);
      const Output out = run(kernels(), w, a, 3);
      for (uint32_t t = 0; t < tokens; ++t) {
        for (size_t i = w.rows(); i < out.ldy; ++i) ASSERT_EQ(out.y[t * out.ldy + i], kUntouchedOutput);
      }
    }
  }
}

TEST_P(Matmul, EveryStoredValueAndScale) {
  Random random(4);
  for (const Encoding e : kAllEncodings) {
    if (!is_quantized(e)) continue;
    for (const uint32_t tokens : {1u, 2u, 9u}) {
      expect_twin(kernels(), Weights::any_bytes(e, 2, 512, random), Activations::random(tokens, 512, random));
    }
  }
}

// The largest products in the integer sums: weights of -128, -8 and 7 by activations of +-127.
TEST_P(Matmul, ExtremesDoNotSaturate) {
  for (const Encoding e : {Encoding::q8_0, Encoding::q4_0}) {
    for (const int fill : {0x00, 0xff}) {
      Weights w(e, 1, 64);
      const uint16_t one = f32_to_f16(1);
      std::fill_n(w.bytes(), w.size(), static_cast<std::byte>(fill));
      for (size_t block = 0; block < w.size(); block += kGroupRows * block_bytes(e)) {
        for (uint32_t r = 0; r < kGroupRows; ++r) std::memcpy(w.bytes() + block + 2 * r, &one, sizeof one);
      }
      for (const float sign : {1.0f, -1.0f}) {
        for (const uint32_t tokens : {1u, 8u}) {
          Activations a(tokens, 64, 64);
          std::fill(a.x.begin(), a.x.end(), sign * 127.0f);
          a.quantize();
          expect_twin(kernels(), w, a);
          const int q = e == Encoding::q8_0 ? fill - 128 : (fill & 15) - 8;
          EXPECT_EQ(run_int8(kernels(), w, a).y[0], static_cast<float>(q) * sign * 127 * 64);
          EXPECT_EQ(run(kernels(), w, a).y[0], static_cast<float>(q) * sign * 127 * 64);
        }
      }
    }
  }
}

TEST_P(Matmul, ZerosHugeSmallAndDenormal) {
  Random random(5);
  for (const Encoding e : kAllEncodings) {
    for (const float magnitude : {0.0f, 6e4f, 1e-7f}) {
      const auto w = Weights::random(e, 2, in_blocks(e, 64), random, magnitude);
      for (const float x : {0.0f, 1e30f, 1e-30f, 1e-40f}) {
        expect_twin(kernels(), w, Activations::random(1, w.cols(), random, x));
        expect_twin(kernels(), w, Activations::random(14, w.cols(), random, x));
      }
    }
  }
}

TEST_P(Matmul, NotANumberReachesTheResult) {
  Random random(6);
  for (const Encoding e : kAllEncodings) {
    const auto w = Weights::random(e, 1, in_blocks(e, 64), random);
    for (const uint32_t tokens : {1u, 9u}) {
      auto a = Activations::random(tokens, w.cols(), random);
      a.x[40] = std::numeric_limits<float>::quiet_NaN();
      a.quantize();
      EXPECT_TRUE(std::isnan(run(kernels(), w, a).y[3]));
      if (is_quantized(e)) {
        EXPECT_TRUE(std::isnan(run_int8(kernels(), w, a).y[3]));
      }
    }
  }
}

// A row's bits depend neither on the batch, nor on neighbours, nor on the division of the work.
TEST_P(Matmul, IndependentOfBatchAndChunk) {
  Random random(7);
  for (const Encoding e : kAllEncodings) {
    const uint32_t cols = in_blocks(e, 1312), groups = 11, tokens = 33;
    const auto w = Weights::random(e, groups, cols, random);
    const auto a = Activations::random(tokens, cols, random);
    const Output whole = run(kernels(), w, a);
    const Output whole_int8 = is_quantized(e) ? run_int8(kernels(), w, a) : Output(0, 1);
    for (const uint32_t token_step : {1u, 4u, 6u, 19u}) {
      for (const uint32_t group_step : {1u, 2u, 5u, 11u}) {
        Output cut(tokens, w.rows());
        Output cut_int8(tokens, w.rows());
        for (uint32_t t = 0; t < tokens; t += token_step) {
          for (uint32_t g = 0; g < groups; g += group_step) {
            const uint32_t nt = std::min(token_step, tokens - t), ng = std::min(group_step, groups - g);
            const size_t at = t * cut.ldy + g * kGroupRows;
            kernels().matmul(e, w.group(g), ng, cols, a.x.data() + t * a.ldx, a.ldx, nt, cut.y.data() + at,
                             cut.ldy);
            if (!is_quantized(e)) continue;
            kernels().matmul_int8(e, w.group(g), ng, cols, a.quantized, t, nt, cut_int8.y.data() + at,
                                  cut.ldy);
          }
        }
        expect_same_bits(whole, cut, "cut");
        if (is_quantized(e)) expect_same_bits(whole_int8, cut_int8, "cut int8");
      }
    }
  }
}

TEST(Scalar, IsTheProductOfTheUnpackedRows) {
  Random random(8);
  for (const Encoding e : kAllEncodings) {
    const uint32_t cols = in_blocks(e, 96);
    const auto w = Weights::random(e, 2, cols, random);
    const auto a = Activations::random(2, cols, random);
    const Output y = run(scalar(), w, a);
    for (uint32_t r = 0; r < w.rows(); ++r) {
      std::vector<float> row(cols);
      unpack_row(e, r % kGroupRows, {w.group(r / kGroupRows), group_bytes(e, cols)}, row);
      for (uint32_t t = 0; t < 2; ++t) {
        double want = 0;
        for (uint32_t c = 0; c < cols; ++c) want += double{row[c]} * a.x[t * a.ldx + c];
        EXPECT_NEAR(y.y[t * y.ldy + r], want, 1e-5) << name(e);
      }
    }
  }
}

// With activations that round exactly, the int8 product equals that of the values.
TEST(Scalar, Int8IsTheProductOfTheUnpackedRows) {
  Random random(9);
  for (const Encoding e : kAllEncodings) {
    if (!is_quantized(e)) continue;
    const uint32_t cols = in_blocks(e, 96);
    const auto w = Weights::random(e, 2, cols, random);
    Activations a(2, cols, cols);
    for (size_t i = 0; i < a.x.size(); ++i)
      a.x[i] = i % kQuantBlock == 0 ? 127.0f : static_cast<float>(random.below(255)) - 127.0f;
    a.quantize();
    const Output want = run(scalar(), w, a);
    const Output got = run_int8(scalar(), w, a);
    for (size_t i = 0; i < want.y.size(); ++i) EXPECT_NEAR(got.y[i], want.y[i], 1e-3) << name(e);
  }
}

// With f32 activations all but q8_0 and q4_0 give the bits of the same values stored in f32.
TEST_P(Matmul, BlocksAreTheirValues) {
  Random random(10);
  for (const Encoding e : kAllEncodings) {
    if (e == Encoding::q8_0 || e == Encoding::q4_0) continue;
    const auto w = Weights::random(e, 3, 768, random);
    Weights values(Encoding::f32, 3, 768);
    for (uint32_t g = 0; g < 3; ++g) {
      std::vector<float> rows(size_t{kGroupRows} * 768);
      for (uint32_t r = 0; r < kGroupRows; ++r)
        unpack_row(e, r, {w.group(g), group_bytes(e, 768)}, std::span(rows).subspan(size_t{r} * 768, 768));
      pack_row_group(Encoding::f32, kGroupRows, 768, std::as_bytes(std::span(rows)), values.group(g));
    }
    for (const uint32_t tokens : {1u, 3u, 30u}) {
      const auto a = Activations::random(tokens, 768, random);
      expect_same_bits(run(kernels(), values, a), run(kernels(), w, a), std::string(name(e)).c_str());
    }
  }
}

TEST(KernelNames, BestFirstAndScalarAlways) {
  ASSERT_FALSE(kernel_names().empty());
  EXPECT_EQ(kernel_names().back(), "scalar");
  EXPECT_EQ(best_kernels().name, kernel_names().front());
  for (const auto known : kernel_names()) EXPECT_EQ(kernels_by_name(known)->name, known);
  EXPECT_EQ(kernels_by_name("avx1024"), nullptr);
}

}  // namespace
}  // namespace tierd
