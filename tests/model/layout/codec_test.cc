#include "core/model/layout/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "core/base/random.h"

namespace tierd {
namespace {

TEST(Codec, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t h = 0; h <= 0xffff; ++h) {
    const float f = f16_to_f32(static_cast<uint16_t>(h));
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(f))));
    } else {
      ASSERT_EQ(f32_to_f16(f), h) << f;
    }
  }
}

TEST(Codec, HalfRoundsToNearestEven) {
  EXPECT_EQ(f32_to_f16(1.0f + 0x1p-11f), 0x3c00);             // tie, down to even
  EXPECT_EQ(f32_to_f16(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);  // above the tie
  EXPECT_EQ(f32_to_f16(1.0f + 3 * 0x1p-11f), 0x3c02);         // tie, up to even
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0x0000);  // tie between 0 and the smallest subnormal
  EXPECT_EQ(f32_to_f16(0x1.8p-25f), 0x0001);
}

TEST(Codec, Bfloat16RoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(1.0f + 3 * 0x1p-8f), 0x3f82);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::numeric_limits<float>::quiet_NaN()))));
}

class CodecRoundTrip : public testing::TestWithParam<Encoding> {};

TEST_P(CodecRoundTrip, ErrorStaysWithinTheStep) {
  const Encoding e = GetParam();
  Random random(3);
  std::vector<float> x(32 * 40);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = random.symmetric() * std::exp2(static_cast<float>(i / 32 % 20) - 10);
  std::vector<std::byte> bytes(encoded_bytes(e, x.size()));
  std::vector<float> y(x.size());
  encode(e, x, bytes);
  decode(e, bytes, y);
  for (size_t b = 0; b < x.size(); b += 32) {
    float top = 0;
    for (size_t i = b; i < b + 32; ++i) top = std::max(top, std::fabs(x[i]));
    for (size_t i = b; i < b + 32; ++i) {
      const float error = std::fabs(x[i] - y[i]);
      switch (e) {
        case Encoding::f32:
          EXPECT_EQ(error, 0);
          break;
        case Encoding::f16:
          EXPECT_LE(error, std::fabs(x[i]) * 0x1p-11f + 0x1p-25f);
          break;
        case Encoding::bf16:
          EXPECT_LE(error, std::fabs(x[i]) * 0x1p-8f);
          break;
        // half a step, plus the error of rounding the scale to f16 over 127 steps
        case Encoding::q8_0:
          EXPECT_LE(error, top * (0.5f / 127 + 0x1p-10f));
          break;
        // the positive end saturates at 7 of 8 steps
        case Encoding::q4_0:
          EXPECT_LE(error, top * (1.0f / 8 + 0x1p-9f));
          break;
        default:  // tests/model/layout/blocks_test.cc
          break;
      }
    }
  }
  // Decoding and encoding again changes nothing.
  std::vector<std::byte> again(bytes.size());
  encode(e, y, again);
  std::vector<float> z(y.size());
  decode(e, again, z);
  EXPECT_EQ(y, z);
}
INSTANTIATE_TEST_SUITE_P(All, CodecRoundTrip,
                         testing::Values(Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0,
                                         Encoding::q4_0),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST(Codec, ZeroBlockHasNoNan) {
  for (const Encoding e : kAllEncodings) {
    const std::vector<float> x(block_values(e), 0.0f);
    std::vector<std::byte> bytes(encoded_bytes(e, x.size()));
    std::vector<float> y(x.size(), 1.0f);
    encode(e, x, bytes);
    decode(e, bytes, y);
    EXPECT_EQ(y, x);
  }
}

TEST(Codec, NamesAreFoundAgain) {
  for (const Encoding e : kAllEncodings) {
    EXPECT_EQ(by_name<Encoding>(name(e)), e);
  }
  EXPECT_EQ(by_name<Encoding>("q5_2"), std::nullopt);
}

// The naive twin decodes everything.
TEST_P(CodecRoundTrip, WhatIsNotFiniteIsFoundInItsBlock) {
  const Encoding e = GetParam();
  const uint32_t block = block_values(e);
  constexpr size_t kBlocks = 7;
  Random random(11);
  std::vector<float> values(kBlocks * block), decoded(values.size());
  for (float& value : values) value = random.symmetric();
  std::vector<std::byte> sound(encoded_bytes(e, values.size()));
  encode(e, values, sound);
  EXPECT_EQ(first_not_finite(e, sound), std::nullopt);
  for (size_t at = 0; at + 1 < sound.size(); ++at) {
    std::vector<std::byte> bytes = sound;
    bytes[at] = bytes[at + 1] = std::byte{0x7f};
    decode(e, bytes, decoded);
    const auto bad = std::ranges::find_if_not(decoded, [](float value) { return std::isfinite(value); });
    std::optional<size_t> expected;
    if (bad != decoded.end()) expected = static_cast<size_t>(bad - decoded.begin()) / block * block;
    ASSERT_EQ(first_not_finite(e, bytes), expected) << "byte " << at;
  }
}

}  // namespace
}  // namespace tierd
