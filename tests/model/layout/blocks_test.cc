#include "core/model/layout/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/random.h"
#include "core/model/layout/block_layout.h"
#include "core/model/layout/block_words.h"
#include "core/model/layout/codec.h"

namespace tierd {
namespace {

std::vector<Encoding> block_encodings() {
  std::vector<Encoding> found;
  std::ranges::copy_if(kAllEncodings, std::back_inserter(found), is_quantized);
  return found;
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

// A block with its values by gguf-py.
struct GoldenBlock {
  std::vector<std::byte> bytes;
  std::vector<float> values;
};
std::vector<GoldenBlock> golden_blocks(Encoding e) {
  std::ifstream file(TIERD_SOURCE_DIR "/tests/golden/encodings/blocks.json");
  const auto all = nlohmann::json::parse(file);
  std::vector<GoldenBlock> blocks;
  for (const auto& block : all.at(std::string(name(e)))) {
    GoldenBlock golden{from_hex(block.at("bytes")), std::vector<float>(block_values(e))};
    const auto values = from_hex(block.at("values"));
    std::memcpy(golden.values.data(), values.data(), values.size());
    blocks.push_back(std::move(golden));
  }
  return blocks;
}

class Blocks : public testing::TestWithParam<Encoding> {};

TEST_P(Blocks, AreDecodedAsOthersDo) {
  const Encoding e = GetParam();
  for (const GoldenBlock& golden : golden_blocks(e)) {
    std::vector<float> values(block_values(e));
    decode(e, golden.bytes, values);
    for (size_t j = 0; j < values.size(); ++j) ASSERT_EQ(values[j], golden.values[j]) << j;
  }
}

TEST_P(Blocks, PartsMakeTheValue) {
  const Encoding e = GetParam();
  for (const GoldenBlock& golden : golden_blocks(e)) {
    const std::byte* block = golden.bytes.data();
    for (uint32_t j = 0; j < block_values(e); ++j) {
      const StepAndMin of = step_in_block(e, block, j);
      const double exact = double{of.step} * value_in_block(e, block, j) - double{of.min};
      EXPECT_EQ(golden.values[j], static_cast<float>(exact)) << j;
    }
  }
}

// The widest gap between two neighbouring values of a block that spans -1 … 1.
float widest_gap(Encoding e) {
  if (e == Encoding::mxfp4) return 2.0F / 4;  // 4 and 6 of a largest value between 4 and 8
  if (has_table(e)) return 24.0F / 113;
  return 2.0F / static_cast<float>((1u << code_width(e)) - 1);
}

// Half a gap, plus the errors of rounding a scale and a minimum to their integers, plus the end that a range
// without a minimum has not: its positive half has one step less.
TEST_P(Blocks, ErrorOfTheQuantizerIsBounded) {
  const Encoding e = GetParam();
  float bound = widest_gap(e) * (has_min(e) ? 0.5F : 1.0F);
  if (has_scales(e)) {
    const ScaleBits bits = scale_bits(e, 0);
    const auto most = static_cast<float>((1 << (bits.low_width + bits.high_width)) - 1 - bits.offset);
    bound += (has_min(e) ? 1.5F : 0.5F) / most;
  }
  Random random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<float> x(block_values(e));
    const float magnitude = std::exp2(static_cast<float>(round - 10));
    float top = 0;
    for (float& value : x) {
      value = magnitude * (random.symmetric() + static_cast<float>(round % 3 - 1));  // also of one sign only
      top = std::max(top, std::fabs(value));
    }
    std::vector<std::byte> bytes(block_bytes(e));
    encode(e, x, bytes);
    std::vector<float> y(x.size());
    decode(e, bytes, y);
    for (uint32_t j = 0; j < x.size(); ++j) EXPECT_NEAR(y[j], x[j], top * (bound + 0x1p-9F)) << j;
  }
}

TEST_P(Blocks, EveryScaleIsWrittenWhereItIsRead) {
  const Encoding e = GetParam();
  Random random(4);
  std::vector<float> x(block_values(e));
  for (uint32_t j = 0; j < x.size(); ++j)  // scales of many magnitudes
    x[j] = random.symmetric() * static_cast<float>(1 + j / scaled_values(e));
  std::vector<std::byte> bytes(block_bytes(e));
  encode(e, x, bytes);
  std::vector<float> y(x.size());
  decode(e, bytes, y);
  for (uint32_t j = 0; j < x.size(); ++j) {
    EXPECT_NE(step_in_block(e, bytes.data(), j).step, 0) << j;
    EXPECT_NEAR(y[j], x[j], static_cast<float>(1 + j / scaled_values(e)) * (code_width(e) < 4 ? 0.7F : 0.3F))
        << j;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Blocks, testing::ValuesIn(block_encodings()),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST(FifthBits, AreTransposedAndBack) {
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(fours_of_bits(1u << i), 1u << (i % 4 * 8 + i / 4)) << i;
    EXPECT_EQ(bits_of_fours(fours_of_bits(1u << i)), 1u << i) << i;
  }
  EXPECT_EQ(bits_of_fours(fours_of_bits(0x9e3779b9u)), 0x9e3779b9u);
}

}  // namespace
}  // namespace tierd
