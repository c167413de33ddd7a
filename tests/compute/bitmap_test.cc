#include "tiers/compute/bitmap.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "core/base/random.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/row_group.h"
#include "tests/compute/kernel_sets_under_test.h"

namespace tierd {
namespace {

constexpr Encoding kWithBitmap[] = {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0};

struct alignas(64) Line {
  std::byte bytes[64];
};

// Row groups, about `percent` of them not zero, dense and as a bitmap that ends where its memory does.
struct Pruned {
  Pruned(Encoding e, uint32_t groups_, uint32_t cols_, uint32_t percent, Random& random)
      : encoding(e), groups(groups_), cols(cols_), bitmap(*Bitmap::of(e, true)) {
    const uint64_t bytes = groups * group_bytes(e, cols);
    lines.resize(divide_up(bytes, sizeof(Line)));
    std::vector<float> rows(size_t{kGroupRows} * cols);
    std::vector<std::byte> plain(encoded_bytes(e, rows.size()));
    for (uint32_t g = 0; g < groups; ++g) {
      for (float& value : rows) value = random.below(100) < percent ? random.symmetric() : 0.0F;
      encode(e, rows, plain);
      pack_row_group(e, kGroupRows, cols, plain, group(g));
    }
    packed.resize(compressed_bytes(bitmap, dense()));
    compress(bitmap, dense(), packed);
  }
  std::span<std::byte> group(uint32_t g) {
    const uint64_t bytes = group_bytes(encoding, cols);
    return {reinterpret_cast<std::byte*>(lines.data()) + g * bytes, bytes};
  }
  std::span<const std::byte> dense() const {
    return {reinterpret_cast<const std::byte*>(lines.data()), groups * group_bytes(encoding, cols)};
  }
  BitmapRows rows() const {
    const std::byte* const values = packed.data() + bitmap.bits_bytes(dense().size());
    return {encoding, packed.data(), {values, packed.data() + packed.size()}, groups, cols};
  }

  Encoding encoding;
  uint32_t groups, cols;
  Bitmap bitmap;
  std::vector<Line> lines;
  std::vector<std::byte> packed;
};

// Returns the bits, so that zeros keep their sign and a NaN equals itself.
std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

class BitmapKernels : public KernelSet {};
INSTANTIATE_TEST_SUITE_P(Sets, BitmapKernels, testing::ValuesIn(kernel_names().begin(), kernel_names().end()),
                         [](const auto& set) { return test_name(set.param); });

TEST_P(BitmapKernels, ExpandWhatTheLayoutCompressed) {
  Random random(1);
  for (const Bitmap& bitmap : {Bitmap{4, std::byte{0}}, Bitmap{2, std::byte{0}}, Bitmap{1, std::byte{0}},
                               Bitmap{1, std::byte{0x80}}}) {
    for (const uint64_t elements : {8, 16, 56, 64, 72, 640, 4096, 5000}) {
      for (const uint32_t percent : {0u, 1u, 50u, 99u, 100u}) {
        std::vector<std::byte> dense(elements * bitmap.element_bytes, bitmap.zero);
        for (std::byte& b : dense) {
          if (random.below(100) < percent) b = static_cast<std::byte>(random.below(256));
        }
        std::vector<std::byte> packed(compressed_bytes(bitmap, dense));
        compress(bitmap, dense, packed);
        const std::byte* const values = packed.data() + bitmap.bits_bytes(dense.size());
        const std::byte* const end = packed.data() + packed.size();
        std::vector<std::byte> out(dense.size());
        EXPECT_EQ(kernels().expand_bitmap(bitmap, packed.data(), {values, end}, elements, out.data()), end);
        ASSERT_EQ(out, dense) << elements << " elements of " << bitmap.element_bytes << ", " << percent
                              << " %";
        // A slot whose bits claim more values than it has.
        if (values != end) {
          EXPECT_EQ(kernels().expand_bitmap(bitmap, packed.data(), {values, end - 1}, elements, out.data()),
                    nullptr);
        }
      }
    }
  }
}

TEST_P(BitmapKernels, MultiplyAsTheDenseRowsToTheBit) {
  Random random(2);
  ExpandedLines scratch;
  for (const Encoding e : kWithBitmap) {
    for (const uint32_t cols : {32u, 352u, 7u, 172u, 1u, 1280u}) {
      if (cols % block_values(e) != 0) continue;
      for (const uint32_t percent : {0u, 50u, 100u}) {
        const Pruned w(e, 3, cols, percent, random);
        for (const uint32_t tokens : {1u, 2u, 3u, 4u, 5u, 17u}) {
          std::vector<float> x(size_t{tokens} * cols);
          for (float& value : x) value = random.symmetric();
          const size_t ldy = w.groups * kGroupRows + 3;
          std::vector<float> expected(tokens * ldy, -1), found(tokens * ldy, -1);
          kernels().matmul(e, w.dense().data(), w.groups, cols, x.data(), cols, tokens, expected.data(), ldy);
          EXPECT_EQ(multiply_bitmap(kernels(), w.rows(), x.data(), cols, tokens, found.data(), ldy, scratch),
                    w.rows().values.end);
          ASSERT_EQ(bits_of(found), bits_of(expected)) << name(e) << ", " << cols << " columns, " << tokens;
        }
      }
    }
  }
}

TEST_P(BitmapKernels, MultiplyInt8AsTheDenseRows) {
  Random random(3);
  ExpandedLines scratch;
  for (const uint32_t cols : {32u, 352u, 8192u}) {
    const Pruned w(Encoding::q8_0, 5, cols, 50, random);
    for (const uint32_t tokens : {1u, 4u, 19u}) {
      std::vector<float> x(size_t{tokens} * cols);
      for (float& value : x) value = random.symmetric();
      QuantizedRows quantized;
      quantized.resize(tokens + 1, cols);
      for (uint32_t t = 0; t < tokens; ++t)
        kernels().quantize_row(x.data() + t * cols, t + 1, quantized, nullptr);
      const size_t ldy = w.groups * kGroupRows;
      std::vector<float> expected(tokens * ldy), found(tokens * ldy);
      kernels().matmul_int8(w.encoding, w.dense().data(), w.groups, cols, quantized, 1, tokens,
                            expected.data(), ldy);
      EXPECT_EQ(multiply_bitmap_int8(kernels(), w.rows(), quantized, 1, tokens, found.data(), ldy, scratch),
                w.rows().values.end);
      ASSERT_EQ(bits_of(found), bits_of(expected)) << cols << " columns, " << tokens << " tokens";
    }
  }
}

TEST_P(BitmapKernels, StopWhereValuesAreMissing) {
  Random random(4);
  ExpandedLines scratch;
  const Pruned w(Encoding::f16, 2, 172, 50, random);
  BitmapRows rows = w.rows();
  rows.values.end -= 2;
  for (const uint32_t tokens : {1u, 4u, 9u}) {
    std::vector<float> x(tokens * 172U), y(tokens * 32U);
    EXPECT_EQ(multiply_bitmap(kernels(), rows, x.data(), 172, tokens, y.data(), 32, scratch), nullptr);
  }
}

TEST(CountBits, CountsThemAll) {
  std::vector<std::byte> bits(37, std::byte{0x11});
  EXPECT_EQ(count_bits(bits.data(), bits.size()), 74U);
  EXPECT_EQ(count_bits(bits.data() + 1, 8), 16U);
  EXPECT_EQ(count_bits(bits.data(), 0), 0U);
}

}  // namespace
}  // namespace tierd
