#include "core/model/layout/k_quants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/checksum.h"
#include "core/base/random.h"
#include "core/model/layout/codec.h"

namespace tierd {
namespace {

void put_half(std::vector<std::byte>& bytes, size_t at, float value) {
  const uint16_t half = f32_to_f16(value);
  std::memcpy(&bytes[at], &half, sizeof half);
}

// Returns a super-block whose bytes all differ, so that they reach every field.
std::vector<std::byte> patterned(Encoding e) {
  std::vector<std::byte> bytes(block_bytes(e));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
  put_half(bytes, e == Encoding::q6_k ? 208 : 0, 0.3125F);
  if (e != Encoding::q6_k) put_half(bytes, 2, -1.75F);
  return bytes;
}

struct Expected {
  Encoding encoding;
  uint64_t checksum;  // of the 256 floats
  std::vector<float> some;
};

// gguf-py 0.19.0, gguf.quants.dequantize, of the same bytes.
TEST(KQuants, AreDecodedAsOthersDo) {
  const std::vector<uint32_t> places = {0, 17, 33, 63, 64, 100, 129, 160, 200, 255};
  const std::vector<Expected> all = {
      {Encoding::q4_k,
       0x7b4c0ff45e97be37,
       {195.8125F, 89.25F, 52.0F, 58.25F, 247.6875F, 94.5F, 21.0F, 221.25F, 75.6875F, 81.875F}},
      {Encoding::q5_k,
       0x6c8de7149c0f9719,
       {350.8125F, 89.25F, 44.5F, 70.75F, 247.6875F, 138.25F, 21.0F, 108.75F, 75.6875F, 100.625F}},
      {Encoding::q6_k,
       0x2a50795cc24c0510,
       {-447.1875F, 160.0F, -210.0F, -181.25F, -950.0F, 788.4375F, 130.0F, 209.6875F, 340.3125F, -18.75F}},
  };
  for (const Expected& want : all) {
    std::vector<float> values(kSuperBlock);
    decode(want.encoding, patterned(want.encoding), values);
    for (size_t i = 0; i < places.size(); ++i) EXPECT_EQ(values[places[i]], want.some[i]) << places[i];
    EXPECT_EQ(checksum(std::as_bytes(std::span(values))), want.checksum) << name(want.encoding);
  }
}

class KQuant : public testing::TestWithParam<Encoding> {};

TEST_P(KQuant, PartsMakeTheValue) {
  const Encoding e = GetParam();
  const auto bytes = patterned(e);
  std::vector<float> values(kSuperBlock);
  decode(e, bytes, values);
  const KFactors factors = k_factors(e, bytes.data());
  for (uint32_t j = 0; j < kSuperBlock; ++j) {
    const KScale scale = k_scale(e, bytes.data(), j / k_block_values(e));
    const double exact =
        double{factors.d} * scale.scale * k_quant(e, bytes.data(), j) - double{factors.dmin} * scale.min;
    EXPECT_EQ(values[j], static_cast<float>(exact)) << j;
  }
}

// Half a step of a block, plus the errors of rounding its scale and its minimum.
TEST_P(KQuant, ErrorOfTheQuantizerIsBounded) {
  const Encoding e = GetParam();
  const float quants = e == Encoding::q4_k ? 15 : 31;
  const float bound =
      e == Encoding::q6_k ? 0.5F / 32 + 1 / 32.0F + 0.5F / 127 : 2 * (0.5F / quants + 0.5F / 63) + 0.5F / 63;
  Random random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<float> x(kSuperBlock);
    const float magnitude = std::exp2(static_cast<float>(round - 10));
    float top = 0;
    for (float& value : x) {
      value = magnitude * (random.symmetric() + static_cast<float>(round % 3 - 1));  // also of one sign only
      top = std::max(top, std::fabs(value));
    }
    std::vector<std::byte> bytes(block_bytes(e));
    encode(e, x, bytes);
    std::vector<float> y(kSuperBlock);
    decode(e, bytes, y);
    for (uint32_t j = 0; j < kSuperBlock; ++j) EXPECT_NEAR(y[j], x[j], top * (bound + 0x1p-9F)) << j;
  }
}

TEST_P(KQuant, EveryFieldIsWrittenWhereItIsRead) {
  const Encoding e = GetParam();
  Random random(4);
  std::vector<float> x(kSuperBlock);
  for (uint32_t j = 0; j < kSuperBlock; ++j)  // blocks of many magnitudes, so scales differ
    x[j] = random.symmetric() * static_cast<float>(1 + j / k_block_values(e));
  std::vector<std::byte> bytes(block_bytes(e));
  encode(e, x, bytes);
  std::vector<float> y(kSuperBlock);
  decode(e, bytes, y);
  for (uint32_t b = 0; b < kSuperBlock / k_block_values(e); ++b) {
    const KScale scale = k_scale(e, bytes.data(), b);
    EXPECT_NE(scale.scale, 0) << b;
    for (uint32_t j = b * k_block_values(e); j < (b + 1) * k_block_values(e); ++j)
      EXPECT_NEAR(y[j], x[j], static_cast<float>(1 + b) / 5) << j;
  }
}

INSTANTIATE_TEST_SUITE_P(All, KQuant, testing::Values(Encoding::q4_k, Encoding::q5_k, Encoding::q6_k),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace tierd
