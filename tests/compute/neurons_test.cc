// Rows and columns of neurons in slots at arbitrary places.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/base/random.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/column.h"
#include "tests/compute/kernel_sets_under_test.h"

namespace tierd {
namespace {

constexpr Encoding kAll[] = {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0, Encoding::q4_0};
constexpr uint32_t kLengths[] = {32, 64, 96, 2080, 7, 40, 172, 2049};

std::vector<float> random_inputs(size_t n, Random& random) {
  std::vector<float> x(n);
  for (auto& v : x) v = random.symmetric();
  return x;
}

// Rows or columns in slots aligned to 64 bytes, in another order than their numbers.
class Slots {
 public:
  using Encode = void (*)(Encoding, std::span<const float>, std::span<std::byte>);
  Slots(Encode encode_one, Encoding e, uint32_t n, uint32_t values, Random& random) {
    const uint64_t bytes = encoded_bytes(e, values);
    const uint64_t lines = bytes / sizeof(Line) + 1;
    memory_.resize(n * lines);
    for (uint32_t i = 0; i < n; ++i) {
      auto* at = reinterpret_cast<std::byte*>(memory_.data() + (i * 7 + 3) % n * lines);
      encode_one(e, random_inputs(values, random), {at, bytes});
      slots_.push_back(at);
    }
  }
  std::span<const std::byte* const> get(size_t n) const { return {slots_.data(), n}; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory_;
  std::vector<const std::byte*> slots_;
};
struct Rows : Slots {
  Rows(Encoding e, uint32_t n, uint32_t cols, Random& random) : Slots(encode, e, n, cols, random) {}
};
class Columns : public Slots {
 public:
  Columns(Encoding e, uint32_t n, uint32_t values, Random& random)
      : Slots(encode_column, e, n, values, random), encoding_(e), values_(values) {}
  // Returns the first n columns, with the first n / 2 again as the next ones.
  ColumnRun run(size_t n) const { return {encoding_, values_, get(n), get(n / 2)}; }

 private:
  Encoding encoding_;
  uint32_t values_;
};

class Neurons : public KernelSet {};
TIERD_ALL_KERNEL_SETS(Neurons);

TEST_P(Neurons, DotsFollowTheirTwin) {
  Random random(1);
  for (const Encoding e : kAll) {
    for (const uint32_t cols : kLengths) {
      if (cols % block_values(e) != 0) continue;
      const Rows rows(e, 5, cols, random);
      for (const uint32_t tokens : {1u, 2u, 4u, 7u}) {
        const size_t ldx = cols + 3, ldy = 6;
        const auto x = random_inputs(tokens * ldx, random);
        std::vector<float> want(tokens * ldy, -1), got(tokens * ldy, -1);
        scalar().dots(e, rows.get(5), cols, x.data(), ldx, tokens, want.data(), ldy);
        kernels().dots(e, rows.get(5), cols, x.data(), ldx, tokens, got.data(), ldy);
        const float bound = 1e-6f * std::sqrt(static_cast<float>(cols)) + 1e-6f;
        for (size_t i = 0; i < want.size(); ++i)
          ASSERT_NEAR(want[i], got[i], bound) << name(e) << ' ' << cols << ' ' << i;
      }
    }
  }
}

TEST_P(Neurons, WeightedSumsEqualTheirTwinBitForBit) {
  Random random(2);
  for (const Encoding e : kAll) {
    for (const uint32_t cols : kLengths) {
      if (cols % block_values(e) != 0) continue;
      const Columns columns(e, kPartialNeurons, cols, random);
      for (const uint32_t n : {1u, 3u, kPartialNeurons}) {
        for (const uint32_t tokens : {1u, 2u, 4u, 7u}) {
          const size_t ldh = n + 1, ldy = cols + 5;
          const auto h = random_inputs(tokens * ldh, random);
          const auto before = random_inputs(tokens * ldy, random);
          for (const uint32_t first : {0u, 32u}) {
            if (first >= cols) continue;
            const uint32_t last = first == 0 || cols < 64 ? cols : 64;
            auto want = before, got = before;
            scalar().add_weighted(columns.run(n), first, last, h.data(), ldh, tokens, want.data(), ldy);
            kernels().add_weighted(columns.run(n), first, last, h.data(), ldh, tokens, got.data(), ldy);
            ASSERT_EQ(want, got) << name(e) << ' ' << cols << ' ' << n << ' ' << tokens << ' ' << first;
          }
        }
      }
    }
  }
}

constexpr Encoding kBlocks[] = {Encoding::q8_0, Encoding::q4_0};

TEST_P(Neurons, Int8SumsEqualTheirTwinBitForBit) {
  Random random(5);
  for (const Encoding e : kBlocks) {
    for (const uint32_t cols : {32u, 64u, 512u, 544u, 2080u}) {
      const Columns columns(e, kPartialNeurons, cols, random);
      for (const uint32_t n : {0u, 1u, 3u, 4u, 17u, kPartialNeurons}) {
        for (const uint32_t tokens : {1u, 2u, 4u, 7u}) {
          const size_t ldh = n + 1, ldy = cols + 5;
          auto h = random_inputs(tokens * ldh, random);
          for (auto& factor : h) factor *= random.below(5) == 0 ? 0.0f : std::exp(4 * random.symmetric());
          const auto before = random_inputs(tokens * ldy, random);
          for (const auto& [first, last] :
               {std::pair{0u, cols}, {cols - 32, cols}, {0u, cols - 9}, {cols / 64 * 32, cols}}) {
            auto want = before, got = before;
            double want_squares[2] = {0, 0}, got_squares[2] = {0, 0};
            scalar().add_weighted_int8(columns.run(n), first, last, h.data(), ldh, tokens, want.data(), ldy,
                                       want_squares);
            kernels().add_weighted_int8(columns.run(n), first, last, h.data(), ldh, tokens, got.data(), ldy,
                                        got_squares);
            ASSERT_EQ(want, got) << name(e) << ' ' << cols << ' ' << n << ' ' << tokens << ' ' << first;
            for (int i = 0; i < 2; ++i)
              ASSERT_NEAR(got_squares[i], want_squares[i], 1e-4 * want_squares[i] + 1e-12);
          }
        }
      }
    }
  }
}

// Compares int8 sums with the same sums in floats.
TEST_P(Neurons, Int8SumsAreNearThoseInFloats) {
  Random random(6);
  constexpr uint32_t kCols = 1024;
  for (const Encoding e : kBlocks) {
    const Columns columns(e, kPartialNeurons, kCols, random);
    const auto h = random_inputs(kPartialNeurons, random);
    std::vector<float> exact(kCols), near(kCols);
    double squares[2] = {0, 0};
    kernels().add_weighted(columns.run(kPartialNeurons), 0, kCols, h.data(), 0, 1, exact.data(), 0);
    kernels().add_weighted_int8(columns.run(kPartialNeurons), 0, kCols, h.data(), 0, 1, near.data(), 0,
                                squares);
    double error = 0, all = 0;
    for (uint32_t c = 0; c < kCols; ++c) {
      error += std::pow(near[c] - exact[c], 2);
      all += std::pow(exact[c], 2);
    }
    EXPECT_LT(std::sqrt(error / all), 0.01) << name(e);
    EXPECT_NEAR(std::sqrt(error / all), std::sqrt(squares[0] / squares[1]), 0.003) << name(e);
  }
}

// A factor that is NaN, infinite or too large reaches every output to which it contributes. A factor too
// small for a reciprocal counts as zero.
TEST_P(Neurons, Int8SumsOfStrangeFactors) {
  Random random(7);
  constexpr uint32_t kCols = 544;
  const float inf = std::numeric_limits<float>::infinity();
  for (const Encoding e : kBlocks) {
    const Columns columns(e, 5, kCols, random);
    for (const float strange : {std::nanf(""), inf, -inf, 3e38f, 1e-38f, 1e-45f, 0.0f}) {
      for (const float other : {0.0f, 1.0f}) {
        const float h[] = {other, other, strange, other, other};
        std::vector<float> want(kCols, 1.0f), got(kCols, 1.0f);
        scalar().add_weighted_int8(columns.run(5), 0, kCols, h, 0, 1, want.data(), 0, nullptr);
        kernels().add_weighted_int8(columns.run(5), 0, kCols, h, 0, 1, got.data(), 0, nullptr);
        for (uint32_t c = 0; c < kCols; ++c) {
          ASSERT_EQ(std::isnan(want[c]), std::isnan(got[c])) << name(e) << ' ' << strange;
          ASSERT_TRUE(std::isnan(want[c]) || want[c] == got[c]) << name(e) << ' ' << strange;
          ASSERT_TRUE(std::isnan(got[c]) || !std::isnan(strange)) << name(e) << ' ' << strange;
        }
      }
    }
  }
}

TEST_P(Neurons, Int8BitsDependOnNoBatchAndNoSplit) {
  Random random(8);
  constexpr uint32_t kCols = 2048, kTokens = 9, kRows = 40;
  for (const Encoding e : kBlocks) {
    const Columns columns(e, kRows, kCols, random);
    const auto h = random_inputs(size_t{kTokens} * kRows, random);
    std::vector<float> sums(size_t{kTokens} * kCols);
    kernels().add_weighted_int8(columns.run(kRows), 0, kCols, h.data(), kRows, kTokens, sums.data(), kCols,
                                nullptr);
    for (uint32_t t = 0; t < kTokens; ++t) {
      for (const uint32_t middle : {0u, 96u, 1024u}) {
        std::vector<float> sum(kCols);
        kernels().add_weighted_int8(columns.run(kRows), 0, middle, h.data() + t * kRows, kRows, 1, sum.data(),
                                    kCols, nullptr);
        kernels().add_weighted_int8(columns.run(kRows), middle, kCols, h.data() + t * kRows, kRows, 1,
                                    sum.data(), kCols, nullptr);
        ASSERT_EQ(0, std::memcmp(sum.data(), &sums[size_t{t} * kCols], kCols * sizeof(float))) << name(e);
      }
    }
  }
}

// A row's bits depend neither on the batch nor on the division of the columns.
TEST_P(Neurons, BitsDependOnNoBatchAndNoSplit) {
  Random random(3);
  constexpr uint32_t kCols = 4096, kTokens = 9, kRows = 40;
  for (const Encoding e : kAll) {
    const Rows rows(e, kRows, kCols, random);
    const Columns columns(e, kRows, kCols, random);
    const auto x = random_inputs(size_t{kTokens} * kCols, random);
    const auto h = random_inputs(size_t{kTokens} * kRows, random);
    std::vector<float> dots(kTokens * kRows), sums(size_t{kTokens} * kCols);
    kernels().dots(e, rows.get(kRows), kCols, x.data(), kCols, kTokens, dots.data(), kRows);
    kernels().add_weighted(columns.run(kRows), 0, kCols, h.data(), kRows, kTokens, sums.data(), kCols);
    for (uint32_t t = 0; t < kTokens; ++t) {
      std::vector<float> alone(kRows), sum(kCols);
      kernels().dots(e, rows.get(kRows), kCols, x.data() + t * kCols, kCols, 1, alone.data(), kRows);
      for (const uint32_t middle : {0u, 96u, 2048u}) {
        std::fill(sum.begin(), sum.end(), 0.0f);
        kernels().add_weighted(columns.run(kRows), 0, middle, h.data() + t * kRows, kRows, 1, sum.data(),
                               kCols);
        kernels().add_weighted(columns.run(kRows), middle, kCols, h.data() + t * kRows, kRows, 1, sum.data(),
                               kCols);
        ASSERT_EQ(0, std::memcmp(sum.data(), &sums[size_t{t} * kCols], kCols * sizeof(float))) << name(e);
      }
      ASSERT_EQ(0, std::memcmp(alone.data(), &dots[t * kRows], kRows * sizeof(float))) << name(e);
    }
  }
}

TEST(NeuronSets, AgreeBitForBit) {
  const auto sets = simd_sets();
  if (sets.size() < 2) GTEST_SKIP() << "this processor has fewer than two SIMD sets";
  Random random(4);
  for (const Encoding e : kAll) {
    const Rows rows(e, 9, 2080, random);
    const auto x = random_inputs(3 * 2080, random);
    std::vector<float> a(27), b(27);
    kernels_by_name(sets[0])->dots(e, rows.get(9), 2080, x.data(), 2080, 3, a.data(), 9);
    kernels_by_name(sets[1])->dots(e, rows.get(9), 2080, x.data(), 2080, 3, b.data(), 9);
    EXPECT_EQ(a, b) << name(e);
  }
}

}  // namespace
}  // namespace tierd
