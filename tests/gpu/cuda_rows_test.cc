// Compares products with row groups and the gather of an embedding with plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/row_mask.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/row_group.h"
#include "tests/gpu/device_array.h"
#include "tests/gpu/row_operator.h"
#include "tiers/gpu/cuda/rows.h"

namespace tierd::cuda {
namespace {

class CudaRows : public KernelTest, public testing::WithParamInterface<Encoding> {
 protected:
  static constexpr uint32_t kLdx = 1600, kLdy = 128;

  // Returns y, [tokens][kLdy], of these units. Elements that are not written are NaN.
  std::vector<float> multiply(const RowOperator& op, const std::vector<Unit>& units,
                              const std::vector<float>& x, uint32_t tokens,
                              const std::vector<uint64_t>& masks = {}) {
    const DeviceArray<std::byte> memory(op.memory);
    const DeviceArray<Unit> list(units);
    const DeviceArray<float> in(x), out(std::vector<float>(tokens * kLdy, std::nanf("")));
    const DeviceArray<uint64_t> mask(masks);
    RowProduct product = op.product(memory.get(), list.get(), units.size());
    product.x = in.get();
    product.y = out.get();
    product.ldx = kLdx;
    product.ldy = kLdy;
    product.tokens = tokens;
    product.masks = masks.empty() ? nullptr : mask.get();
    product.mask_words = mask_words(tokens);
    EXPECT_EQ(multiply_rows(op.e, product, stream()), cudaSuccess);
    return out.read();
  }
  std::vector<uint32_t> widths() const {
    if (block_values(GetParam()) == kSuperBlock) return {256, 512, 1536};
    if (is_quantized(GetParam())) return {32, 64, 96, 544, 1568};
    return {1, 7, 16, 40, 513, 1588};
  }
};

TEST_P(CudaRows, MultiplyAsPlainLoops) {
  for (const uint32_t cols : widths()) {
    for (const uint32_t outs : {1U, 16U, 23U, 100U}) {
      RowOperator op(GetParam(), cols, outs, 32, random_);
      for (const uint32_t tokens : {1U, 3U, 4U, 11U}) {
        SCOPED_TRACE(std::to_string(cols) + " columns, " + std::to_string(outs) + " rows, " +
                     std::to_string(tokens) + " tokens");
        const std::vector<float> x = draw(tokens * kLdx);
        std::vector<Unit> units;
        for (uint32_t u = 0; u < op.units; ++u) units.push_back(op.unit(u));
        const std::vector<float> y = multiply(op, units, x, tokens);
        for (uint32_t r = 0; r < outs; ++r) {
          const std::vector<float> w = op.row(r);
          for (uint32_t t = 0; t < tokens; ++t) {
            double sum = 0, magnitude = 0;
            for (uint32_t c = 0; c < cols; ++c) {
              sum += double{w[c]} * x[t * kLdx + c];
              magnitude += std::abs(double{w[c]} * x[t * kLdx + c]);
            }
            expect_near(y[t * kLdy + r], sum, magnitude, "");
          }
        }
        if (HasFailure()) return;
      }
    }
  }
}

// A row's bits depend neither on other tokens nor on the other units, their order or their places.
TEST_P(CudaRows, BitsDependOnTheRowAlone) {
  const uint32_t cols = widths().back();
  RowOperator op(GetParam(), cols, 96, 32, random_);
  const std::vector<float> x = draw(13 * kLdx);
  std::vector<Unit> units;
  for (uint32_t u = 0; u < op.units; ++u) units.push_back(op.unit(u));
  const std::vector<float> all = multiply(op, units, x, 13);
  std::ranges::reverse(units);
  for (uint32_t t = 0; t < 13; ++t) {
    const std::vector<float> alone(x.begin() + t * kLdx, x.begin() + (t + 1) * kLdx);
    const std::vector<float> y = multiply(op, units, alone, 1);
    for (uint32_t r = 0; r < 96; ++r) ASSERT_EQ(y[r], all[t * kLdy + r]) << "token " << t << ", row " << r;
  }
  const std::vector<float> y = multiply(op, {op.unit(1)}, x, 3);
  for (uint32_t r = 0; r < 96; ++r) {
    if (r / 32 == 1) {
      EXPECT_EQ(y[2 * kLdy + r], all[2 * kLdy + r]);
    } else {
      EXPECT_TRUE(std::isnan(y[2 * kLdy + r])) << "of a unit that was not asked for";
    }
  }
}

TEST_P(CudaRows, WhatATokenDoesNotUseIsZeroToIt) {
  RowOperator op(GetParam(), widths()[1], 64, 32, random_);
  const std::vector<float> y = multiply(op, {op.unit(0), op.unit(1)}, draw(2 * kLdx), 2, {0b10, 0b01});
  EXPECT_EQ(y[0], 0);
  EXPECT_NE(y[32], 0);
  EXPECT_NE(y[kLdy], 0);
  EXPECT_EQ(y[kLdy + 32], 0);
}

TEST_P(CudaRows, NumbersThatAreNoneReachTheResult) {
  const uint32_t cols = widths()[1];
  RowOperator op(GetParam(), cols, 16, 16, random_);
  std::vector<float> x = draw(2 * kLdx);
  x[cols - 1] = std::nanf("");
  x[kLdx] = std::numeric_limits<float>::denorm_min();
  const std::vector<float> y = multiply(op, {op.unit(0)}, x, 2);
  for (uint32_t r = 0; r < 16; ++r) {
    EXPECT_TRUE(std::isnan(y[r]));
    EXPECT_TRUE(std::isfinite(y[kLdy + r]));
  }
}

// Each expert has its own lines. Where no token of a tile uses the expert, nothing is written.
TEST_P(CudaRows, MultiplyExpertsThatAreUsed) {
  const uint32_t cols = widths()[1];
  RowOperator first(GetParam(), cols, 16, 16, random_), second(GetParam(), cols, 16, 16, random_);
  std::vector<std::byte> both = first.memory;
  both.insert(both.end(), second.memory.begin(), second.memory.end());
  const DeviceArray<std::byte> memory(both);
  const DeviceArray<Unit> units(
      std::vector<Unit>{{5, 0}, {2, static_cast<uint32_t>(first.memory.size() / kPlaceUnit)}});
  const std::vector<float> x = draw(kLdx);
  std::vector<float> choice(8, 0.0F);
  choice[2] = 0.5F;
  const DeviceArray<float> in(x), out(std::vector<float>(2 * kLdy, std::nanf(""))), chosen(choice);
  const RowProduct product{.memory = memory.get(),
                           .units = units.get(),
                           .n_units = 2,
                           .groups = 1,
                           .n_in = cols,
                           .row_end = 16,
                           .x = in.get(),
                           .y = out.get(),
                           .ldx = kLdx,
                           .ldy = kLdy,
                           .tokens = 1,
                           .y_lines = 1,
                           .choice = chosen.get(),
                           .ldc = 8};
  ASSERT_EQ(multiply_rows(GetParam(), product, stream()), cudaSuccess);
  const std::vector<float> y = out.read();
  const std::vector<float> alone = multiply(second, {second.unit(0)}, x, 1);
  for (uint32_t r = 0; r < 16; ++r) {
    EXPECT_TRUE(std::isnan(y[r]));
    EXPECT_EQ(y[kLdy + r], alone[r]);
  }
}

TEST_P(CudaRows, GatherWhatTheCodecSays) {
  const uint32_t cols = widths()[2];
  RowOperator op(GetParam(), cols, 100, 32, random_);
  const DeviceArray<std::byte> memory(op.memory);
  const DeviceArray<Unit> units(std::vector<Unit>{op.unit(0), op.unit(3)});
  const std::vector<RowInfo> tokens = {{17, 0, 0, 0}, {99, 0, 0, 0}, {40, 0, 0, 0}, {0, 0, 0, 0}};
  const DeviceArray<RowInfo> rows(tokens);
  const DeviceArray<float> out(std::vector<float>(4 * kLdx, -7.0F));
  const RowGather gather{.memory = memory.get(),
                         .units = units.get(),
                         .n_units = 2,
                         .rows_of_unit = 32,
                         .n_in = cols,
                         .rows = rows.get(),
                         .n_rows = 4,
                         .out = out.get(),
                         .ldo = kLdx};
  ASSERT_EQ(gather_rows(GetParam(), gather, stream()), cudaSuccess);
  const std::vector<float> got = out.read();
  for (uint32_t i = 0; i < 4; ++i) {
    const std::vector<float> expected = op.row(tokens[i].token);
    for (uint32_t c = 0; c < cols; ++c)
      ASSERT_EQ(got[i * kLdx + c], i == 2 ? -7.0F : expected[c]) << "row " << i << ", column " << c;
  }
}

INSTANTIATE_TEST_SUITE_P(Encodings, CudaRows, testing::ValuesIn(kAllEncodings),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace tierd::cuda
