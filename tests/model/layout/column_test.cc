// Columns: strips of scales and values, with the same values as in the plain order.
#include "core/model/layout/column.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/base/random.h"
#include "core/model/layout/codec.h"

namespace tierd {
namespace {

std::vector<float> random_values(size_t n, Random& random) {
  std::vector<float> x(n);
  for (auto& v : x) v = random.symmetric();
  return x;
}

TEST(Column, HoldsTheValuesOfThePlainOrder) {
  Random random(1);
  for (const Encoding e : {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0, Encoding::q4_0}) {
    for (const uint32_t n : {32u, 480u, 512u, 544u, 1024u, 1056u, 7u, 513u}) {
      if (n % block_values(e) != 0) continue;
      const std::vector<float> x = random_values(n, random);
      std::vector<std::byte> plain(encoded_bytes(e, n)), column(encoded_bytes(e, n));
      std::vector<float> want(n), got(n);
      encode(e, x, plain);
      decode(e, plain, want);
      encode_column(e, x, column);
      decode_column(e, column, got);
      EXPECT_EQ(got, want) << name(e) << ' ' << n;
      EXPECT_EQ(column == plain, !is_quantized(e) || n == 32) << name(e) << ' ' << n;
    }
  }
}

// Byte for byte, because stores have this format.
TEST(Column, LiesInStripsOfScalesThenValues) {
  Random random(2);
  constexpr uint32_t kBlocks = 19;  // a whole strip and one of three blocks
  for (const Encoding e : {Encoding::q8_0, Encoding::q4_0}) {
    const std::vector<float> x = random_values(kBlocks * kQuantBlock, random);
    std::vector<std::byte> plain(encoded_bytes(e, x.size())), column(plain.size());
    encode(e, x, plain);
    encode_column(e, x, column);
    const size_t block = e == Encoding::q8_0 ? 34 : 18, values = block - 2;
    for (size_t b = 0; b < kBlocks; ++b) {
      const std::byte* strip = column.data() + (b < 16 ? 0 : 16 * block);
      const size_t in_strip = b % 16, blocks = b < 16 ? 16 : 3;
      EXPECT_EQ(0, std::memcmp(strip + 2 * in_strip, &plain[b * block], 2)) << name(e) << ' ' << b;
      EXPECT_EQ(0, std::memcmp(strip + 2 * blocks + values * in_strip, &plain[b * block + 2], values))
          << name(e) << ' ' << b;
    }
  }
}

}  // namespace
}  // namespace tierd
