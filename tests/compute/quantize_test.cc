#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/random.h"
#include "tests/compute/kernel_sets_under_test.h"

namespace tierd {
namespace {

class Quantize : public KernelSet {
 protected:
  // Quantizes one row with both and compares. Returns the twin's row.
  QuantizedRows expect_twin(const std::vector<float>& x) const {
    QuantizedRows want, got;
    double want_squares[2] = {}, got_squares[2] = {};
    want.resize(2, static_cast<uint32_t>(x.size()));
    got.resize(2, static_cast<uint32_t>(x.size()));
    scalar().quantize_row(x.data(), 1, want, want_squares);
    kernels().quantize_row(x.data(), 1, got, got_squares);
    EXPECT_EQ(want.q, got.q);
    EXPECT_EQ(want.sum, got.sum);
    EXPECT_EQ(want.first_sum, got.first_sum);
    for (size_t i = 0; i < want.scale.size(); ++i) {
      if (!std::isnan(want.scale[i])) {
        EXPECT_EQ(want.scale[i], got.scale[i]);
      } else {
        EXPECT_TRUE(std::isnan(got.scale[i]));
      }
    }
    if (!std::isnan(want_squares[0])) {
      EXPECT_EQ(want_squares[0], got_squares[0]);
      EXPECT_EQ(want_squares[1], got_squares[1]);
    }
    return got;
  }
};
TIERD_ALL_KERNEL_SETS(Quantize);

TEST_P(Quantize, EqualsScalarExactly) {
  Random random(1);
  for (const float magnitude : {1.0f, 1e-3f, 1e30f, 1e-37f, 1e-42f, 0.0f}) {
    std::vector<float> x(4096);
    for (auto& v : x) v = magnitude * random.symmetric();
    expect_twin(x);
  }
}

TEST_P(Quantize, EqualsScalarOnTiesDenormalsAndWhatIsNotFinite) {
  std::vector<float> ties(32);
  ties[0] = 127;
  for (int i = 1; i < 32; ++i) ties[i] = static_cast<float>(i) - 16.5f;  // scale 1: halves to even
  const QuantizedRows q = expect_twin(ties);
  EXPECT_EQ(q.q[32 + 1], -16);
  EXPECT_EQ(q.q[32 + 2], -14);
  const float denormal = std::numeric_limits<float>::denorm_min();
  for (const float largest : {1 * denormal, 60 * denormal, 64 * denormal, 190 * denormal, 254 * denormal}) {
    std::vector<float> x(32, -largest);
    x[3] = largest;
    expect_twin(x);
  }
  for (const float odd : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x(64, 1.0f);
    x[5] = odd;
    const QuantizedRows out = expect_twin(x);
    EXPECT_FALSE(std::isfinite(out.scale[2]));
    EXPECT_TRUE(std::isfinite(out.scale[3]));
  }
}

TEST_P(Quantize, ErrorIsAtMostHalfAStepAndIsCounted) {
  Random random(2);
  std::vector<float> x(256);
  for (auto& v : x) v = random.symmetric();
  QuantizedRows out;
  out.resize(1, 256);
  double squares[2] = {1, 2};  // added to
  kernels().quantize_row(x.data(), 0, out, squares);
  double error = 1, magnitude = 2;
  for (size_t i = 0; i < x.size(); ++i) {
    const double value = double{out.scale[i / 32]} * out.q[i];
    EXPECT_LE(std::fabs(value - x[i]), 0.5001 * out.scale[i / 32]);
    error += (value - x[i]) * (value - x[i]);
    magnitude += double{x[i]} * x[i];
  }
  EXPECT_NEAR(squares[0], error, 1e-9);
  EXPECT_NEAR(squares[1], magnitude, 1e-9);
}

}  // namespace
}  // namespace tierd
