#include "core/model/layout/bitmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/base/random.h"
#include "core/model/layout/codec.h"

namespace tierd {
namespace {

using testing::HasSubstr;

constexpr Bitmap kBitmaps[] = {{4, std::byte{0}}, {2, std::byte{0}}, {1, std::byte{0}}, {1, std::byte{0x80}}};

std::vector<std::byte> compressed(const Bitmap& bitmap, std::span<const std::byte> dense) {
  std::vector<std::byte> out(compressed_bytes(bitmap, dense));
  compress(bitmap, dense, out);
  return out;
}

// Returns `elements` elements, `percent` of which are not zero, of random bytes.
std::vector<std::byte> elements_of(const Bitmap& bitmap, uint64_t elements, uint32_t percent,
                                   Random& random) {
  std::vector<std::byte> dense(elements * bitmap.element_bytes, bitmap.zero);
  for (uint64_t i = 0; i < elements; ++i) {
    if (random.below(100) >= percent) continue;
    for (uint32_t b = 0; b < bitmap.element_bytes; ++b)
      dense[i * bitmap.element_bytes + b] = static_cast<std::byte>(random.below(256));
    dense[i * bitmap.element_bytes] = bitmap.zero ^ std::byte{1};
  }
  return dense;
}

TEST(Bitmap, GivesBackEveryBitAtEverySparsityAndLength) {
  Random random(1);
  for (const Bitmap& bitmap : kBitmaps) {
    for (const uint64_t elements : {1, 7, 8, 9, 63, 64, 65, 127, 1000}) {
      for (uint32_t percent = 0; percent <= 100; percent += 10) {
        const auto dense = elements_of(bitmap, elements, percent, random);
        const auto packed = compressed(bitmap, dense);
        std::vector<std::byte> back(dense.size(), std::byte{7});
        ASSERT_TRUE(decompress(bitmap, packed, back).ok());
        ASSERT_EQ(back, dense) << elements << " elements, " << percent << " %";
      }
    }
  }
}

// Endor, section 3: half of the values and a bit for each, 56.25 % of f16 and 62.5 % of int8.
TEST(Bitmap, TakesItsBitsAndItsValuesAndNothingElse) {
  for (const Bitmap& bitmap : kBitmaps) {
    std::vector<std::byte> dense(4096 * bitmap.element_bytes, bitmap.zero);
    for (uint64_t i = 0; i < 4096; i += 2) dense[i * bitmap.element_bytes] = bitmap.zero ^ std::byte{9};
    EXPECT_EQ(compressed_bytes(bitmap, dense), 4096 / 8 + 2048 * bitmap.element_bytes);
  }
  std::vector<std::byte> half(1024 * 2);
  for (uint64_t i = 0; i < 512; ++i) half[4 * i] = std::byte{1};
  EXPECT_EQ(compressed_bytes({2, std::byte{0}}, half) * 10000, half.size() * 5625);
  std::vector<std::byte> bytes(1024);
  for (uint64_t i = 0; i < 512; ++i) bytes[2 * i] = std::byte{1};
  EXPECT_EQ(compressed_bytes({1, std::byte{0}}, bytes) * 1000, bytes.size() * 625);
}

TEST(Bitmap, KeepsWhatIsNoZero) {
  // -0, quiet and signalling NaNs, infinity, the smallest denormal.
  const std::vector<uint16_t> values = {0x8000, 0x0000, 0x7e01, 0xfc01, 0x7c00, 0x0001, 0x0000, 0x8001};
  const auto dense = std::as_bytes(std::span(values));
  const Bitmap halves{2, std::byte{0}};
  const auto packed = compressed(halves, dense);
  EXPECT_EQ(packed.size(), 1U + 6 * 2);
  std::vector<uint16_t> back(values.size());
  ASSERT_TRUE(decompress(halves, packed, std::as_writable_bytes(std::span(back))).ok());
  EXPECT_EQ(back, values);
}

TEST(Bitmap, IsOfWhatHasZerosOfItsOwn) {
  const Cut rows = Rows{.n_in = 64, .stacked = {16, 16}, .rows = 16};
  const Cut bundles = Bundles{64, 16, false};
  EXPECT_EQ(Bitmap::of(rows, {Encoding::f16, Encoding::f16}), (Bitmap{2, std::byte{0}}));
  EXPECT_EQ(Bitmap::of(rows, {Encoding::f16, Encoding::bf16}), (Bitmap{2, std::byte{0}}));
  EXPECT_EQ(Bitmap::of(rows, {Encoding::f32, Encoding::f32}), (Bitmap{4, std::byte{0}}));
  EXPECT_EQ(Bitmap::of(rows, {Encoding::q8_0, Encoding::q8_0}), (Bitmap{1, std::byte{0x80}}));
  EXPECT_EQ(Bitmap::of(bundles, {Encoding::q8_0, Encoding::q8_0}), (Bitmap{1, std::byte{0}}));
  EXPECT_EQ(Bitmap::of(rows, {Encoding::f16, Encoding::f32}), std::nullopt);
  EXPECT_EQ(Bitmap::of(rows, {Encoding::q4_0, Encoding::q4_0}), std::nullopt);
  EXPECT_EQ(Bitmap::of(rows, {Encoding::q6_k, Encoding::q6_k}), std::nullopt);
}

TEST(Bitmap, RefusesWhatItsBitsDoNotSay) {
  Random random(2);
  const Bitmap bitmap{2, std::byte{0}};
  const auto dense = elements_of(bitmap, 100, 50, random);
  const auto packed = compressed(bitmap, dense);
  std::vector<std::byte> back(dense.size());
  const auto refusal = [&](std::span<const std::byte> bytes) {
    const Status status = decompress(bitmap, bytes, back);
    return status.ok() ? std::string() : status.error().line();
  };
  EXPECT_THAT(refusal(std::span(packed).first(5)),
              HasSubstr("has 5 bytes, expected at least 13 for its bits"));
  EXPECT_THAT(refusal(std::span(packed).first(packed.size() - 2)),
              HasSubstr("bytes, fewer than its bits require"));
  EXPECT_THAT(refusal(std::span(packed).first(packed.size() - 1)),
              HasSubstr("bytes, fewer than its bits require"));
  auto longer = packed;
  longer.push_back(std::byte{0});
  EXPECT_THAT(refusal(longer), HasSubstr("bytes, its bits require"));
  auto beyond = packed;
  beyond[12] |= std::byte{0x80};
  EXPECT_THAT(refusal(beyond), HasSubstr("has bits set after the last of its 100 elements"));
}

}  // namespace
}  // namespace tierd
