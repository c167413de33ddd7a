#include "core/device/ndp_core.h"

#include <gtest/gtest.h>

namespace tierd {
namespace {

// Hermes, Table II and section IV-A: 256 multipliers of eight f16 values in 16 cycles at 1 GHz, 256 KB.
NdpCoreDescription core() {
  return {.clock_hz = 1e9,
          .multipliers = 256,
          .lanes = 8,
          .cycles_per_product = 16,
          .buffer_bytes = 256 * 1024,
          .exponentials = 256,
          .additions = 256,
          .multiplications = 256};
}

// 256 * 8 / 16 a cycle.
TEST(NdpCore, Multiplies128GigaASecond) {
  EXPECT_DOUBLE_EQ(core().multiply_adds(), 128e9);
}

// 2,048 products are one turn of the multipliers, 16 cycles, and come down a tree of 11 levels; one more
// product is another turn.
TEST(NdpCore, ProductsTakeTurnsAndComeThroughTheTree) {
  EXPECT_DOUBLE_EQ(core().products_seconds(0), 0);
  EXPECT_DOUBLE_EQ(core().products_seconds(1), 27e-9);
  EXPECT_DOUBLE_EQ(core().products_seconds(2048), 27e-9);
  EXPECT_DOUBLE_EQ(core().products_seconds(2049), 43e-9);
  // 100 neurons of 9,216 weights times 4 rows: 1,800 turns.
  EXPECT_DOUBLE_EQ(core().products_seconds(100. * 9216 * 4), 28'811e-9);
}

// A row of OPT-66B's network has 9,216 values in and as many out, 36,864 bytes of f16: seven fit.
TEST(NdpCore, MoreRowsThanTheBufferHoldsReadWeightsAgain) {
  EXPECT_EQ(core().passes(1, 18'432), 1u);
  EXPECT_EQ(core().passes(7, 18'432), 1u);
  EXPECT_EQ(core().passes(8, 18'432), 2u);
  EXPECT_EQ(core().passes(16, 18'432), 3u);
  EXPECT_EQ(core().passes(3, 1e6), 3u) << "one row always goes";
}

// 1,000 values are four turns of 256 units.
TEST(NdpCore, TheActivationUnitDoesWhatIsNoProduct) {
  EXPECT_DOUBLE_EQ(core().relu_seconds(1000), 4e-9);
  EXPECT_DOUBLE_EQ(core().elementwise_seconds(1000), 8e-9);
  EXPECT_DOUBLE_EQ(core().exponential_seconds(1000), 12e-9);
}

}  // namespace
}  // namespace tierd
