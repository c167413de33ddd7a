// Compares products of large batches on tensor cores with plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/model/layout/codec.h"
#include "core/model/layout/row_group.h"
#include "tests/gpu/device_array.h"
#include "tests/gpu/row_operator.h"
#include "tiers/gpu/cuda/batch_products.h"

namespace tierd::cuda {
namespace {

class CudaBatch : public KernelTest, public testing::WithParamInterface<Encoding> {
 protected:
  static constexpr uint32_t kLdx = 1600, kLdy = 128;
  static constexpr uint32_t kLeast = 20;
  static constexpr uint32_t kMostTokens = 90;

  // Makes the products of a model with this one operator. `unpacked`: bytes of weights unpacked at a time.
  std::unique_ptr<BatchProducts> products(const RowOperator& op, uint64_t unpacked) {
    ComputePlan plan;
    plan.max_rows = kMostTokens;
    SiteWork site;
    site.cut = Rows{.n_in = op.cols, .stacked = {op.outs}, .rows = op.per_unit};
    plan.sites = {site};
    auto made = BatchProducts::create(plan, kLeast, unpacked);
    EXPECT_TRUE(made.ok()) << made.error().line();
    return made.ok() ? std::move(*made) : nullptr;
  }

  // Returns y, [tokens][kLdy], of these units. Elements that are not written are NaN.
  std::vector<float> multiply(BatchProducts& products, const RowOperator& op, const std::vector<Unit>& units,
                              const std::vector<float>& x, uint32_t tokens) {
    const DeviceArray<std::byte> memory(op.memory);
    const DeviceArray<Unit> list(units);
    const DeviceArray<float> in(x), out(std::vector<float>(tokens * kLdy, std::nanf("")));
    RowProduct product = op.product(memory.get(), list.get(), units.size());
    product.x = in.get();
    product.y = out.get();
    product.ldx = kLdx;
    product.ldy = kLdy;
    product.tokens = tokens;
    EXPECT_TRUE(products.makes(op.e, product));
    EXPECT_EQ(products.multiply(op.e, product, stream()), cudaSuccess);
    return out.read();
  }
  static std::vector<Unit> all_of(const RowOperator& op) {
    std::vector<Unit> units;
    for (uint32_t u = 0; u < op.units; ++u) units.push_back(op.unit(u));
    return units;
  }
  static std::vector<uint32_t> widths() {
    if (block_values(GetParam()) == kSuperBlock) return {256, 1536};
    if (is_quantized(GetParam())) return {32, 544};
    return {1, 40, 513};
  }
};

// The product uses 16 bits of each number, and of a float's significand 24.
TEST_P(CudaBatch, MultiplyAsPlainLoops) {
  for (const uint32_t cols : widths()) {
    for (const uint32_t outs : {1U, 23U, 100U}) {
      RowOperator op(GetParam(), cols, outs, 32, random_);
      const auto batch = products(op, BatchProducts::kUnpackedBytes);
      ASSERT_NE(batch, nullptr);
      for (const uint32_t tokens : {kLeast, 45U}) {
        SCOPED_TRACE(std::to_string(cols) + " columns, " + std::to_string(outs) + " rows, " +
                     std::to_string(tokens) + " tokens");
        const std::vector<float> x = draw(tokens * kLdx);
        const std::vector<float> y = multiply(*batch, op, all_of(op), x, tokens);
        for (uint32_t r = 0; r < outs; ++r) {
          const std::vector<float> w = op.row(r);
          for (uint32_t t = 0; t < tokens; ++t) {
            double sum = 0, magnitude = 0;
            for (uint32_t c = 0; c < cols; ++c) {
              sum += double{w[c]} * x[t * kLdx + c];
              magnitude += std::abs(double{w[c]} * x[t * kLdx + c]);
            }
            EXPECT_LE(std::abs(y[t * kLdy + r] - sum), 1e-6 + 1.6e-5 * magnitude);
          }
        }
        if (HasFailure()) return;
      }
    }
  }
}

// A row's bits depend neither on the message's units and their order, nor on the number of rows unpacked at a
// time, nor on the other tokens. So streamed and resident results agree.
TEST_P(CudaBatch, BitsDependOnTheRowAndItsTokenAlone) {
  RowOperator op(GetParam(), widths().back(), 96, 32, random_);
  const std::vector<float> x = draw(kMostTokens * kLdx);
  const auto whole = products(op, BatchProducts::kUnpackedBytes);
  const auto parts = products(op, 1);
  ASSERT_TRUE(whole && parts);
  std::vector<Unit> units = all_of(op);
  const std::vector<float> all = multiply(*whole, op, units, x, kMostTokens);
  const auto expect_the_same = [&](const std::vector<float>& y, const char* what) {
    for (uint32_t t = 0; t < kMostTokens; ++t) {
      for (uint32_t r = 0; r < 96; ++r)
        ASSERT_EQ(y[t * kLdy + r], all[t * kLdy + r]) << what << ", token " << t << ", row " << r;
    }
  };
  expect_the_same(multiply(*parts, op, units, x, kMostTokens), "a group at a time");
  std::ranges::reverse(units);
  expect_the_same(multiply(*whole, op, units, x, kMostTokens), "in another order");
  const std::vector<float> fewer = multiply(*whole, op, {op.unit(1)}, x, 33);
  for (uint32_t t = 0; t < 33; ++t) {
    for (uint32_t r = 0; r < 96; ++r) {
      if (r / 32 == 1) {
        ASSERT_EQ(fewer[t * kLdy + r], all[t * kLdy + r]) << "token " << t << ", row " << r;
      } else {
        ASSERT_TRUE(std::isnan(fewer[t * kLdy + r])) << "of a unit that was not asked for";
      }
    }
  }
}

TEST_P(CudaBatch, NumbersThatAreNoneReachTheResult) {
  RowOperator op(GetParam(), widths()[1], 16, 16, random_);
  std::vector<float> x = draw(kLeast * kLdx);
  x[0] = std::nanf("");
  x[kLdx] = std::numeric_limits<float>::infinity();
  x[2 * kLdx] = std::numeric_limits<float>::denorm_min();
  const auto batch = products(op, BatchProducts::kUnpackedBytes);
  ASSERT_NE(batch, nullptr);
  const std::vector<float> y = multiply(*batch, op, all_of(op), x, kLeast);
  for (uint32_t r = 0; r < 16; ++r) {
    EXPECT_TRUE(std::isnan(y[r]));
    EXPECT_FALSE(std::isfinite(y[kLdy + r])) << op.row(r)[0];
    EXPECT_TRUE(std::isfinite(y[2 * kLdy + r]));
  }
}

INSTANTIATE_TEST_SUITE_P(Encodings, CudaBatch,
                         testing::Values(Encoding::f16, Encoding::bf16, Encoding::q8_0, Encoding::q4_0,
                                         Encoding::q4_k, Encoding::q5_k, Encoding::q6_k, Encoding::q5_1,
                                         Encoding::q3_k, Encoding::iq4_xs, Encoding::mxfp4),
                         [](const auto& test) { return std::string(name(test.param)); });

// Products that other kernels make as well, or must make.
TEST(CudaBatchOf, IsLeftToOthers) {
  Random random(1);
  ComputePlan plan;
  plan.max_rows = 64;
  SiteWork site;
  site.cut = Rows{.n_in = 64, .stacked = {64}, .rows = 16};
  plan.sites = {site};
  auto made = BatchProducts::create(plan, 32);
  ASSERT_TRUE(made.ok() && *made);
  BatchProducts& batch = **made;
  RowProduct product{.n_units = 1, .groups = 1, .n_in = 64, .tokens = 32};
  EXPECT_TRUE(batch.makes(Encoding::q4_0, product));
  EXPECT_FALSE(batch.makes(Encoding::f32, product)) << "24 bits count";
  product.tokens = 31;
  EXPECT_FALSE(batch.makes(Encoding::q4_0, product));
  product.tokens = 32;
  const uint64_t mask = 1;
  product.masks = &mask;
  EXPECT_FALSE(batch.makes(Encoding::q4_0, product)) << "rows use different ones";
  made = BatchProducts::create(plan, 0);
  EXPECT_TRUE(made.ok() && *made == nullptr);
  made = BatchProducts::create(plan, 65);
  EXPECT_TRUE(made.ok() && *made == nullptr) << "no batch is that large";
  EXPECT_EQ(BatchProducts::device_bytes(plan, 65), 0u);
  EXPECT_GT(BatchProducts::device_bytes(plan, 64), Bf16Products::kWorkspaceBytes);
}

}  // namespace
}  // namespace tierd::cuda
