#include "core/time/ndp_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

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

// 2,048 products are one turn of the multipliers, 16 cycles, followed by a tree of 11 levels. One more
// product takes another turn.
TEST(NdpCore, ProductsTakeTurnsAndComeThroughTheTree) {
  EXPECT_DOUBLE_EQ(core().products_seconds(0), 0);
  EXPECT_DOUBLE_EQ(core().products_seconds(1), 27e-9);
  EXPECT_DOUBLE_EQ(core().products_seconds(2048), 27e-9);
  EXPECT_DOUBLE_EQ(core().products_seconds(2049), 43e-9);
  // 100 neurons of 9,216 weights times 4 rows: 1,800 turns.
  EXPECT_DOUBLE_EQ(core().products_seconds(100. * 9216 * 4), 28'811e-9);
}

// Counts the reads of a core that computes a product weight by weight and output tile by output tile, as the
// hardware would: a tile's results stay in the buffer, and inputs enter it in bursts.
struct Counted {
  std::vector<uint32_t> weights;  // [outputs][inputs], the number of reads of each
  uint64_t input_bytes = 0;
  uint64_t most_bytes = 0;  // in the buffer
};

Counted count(uint32_t buffer, uint32_t rows, uint32_t inputs, uint32_t outputs) {
  constexpr uint32_t kBurst = 32;
  Counted counted;
  counted.weights.resize(size_t{inputs} * outputs);
  const bool resident = (inputs + kBurst) * rows * 2 <= buffer;
  const uint32_t tile = buffer / (rows * 2) - (resident ? inputs : kBurst);
  for (uint32_t first = 0; first < outputs; first += tile) {
    const uint32_t results = std::min(tile, outputs - first);
    for (uint32_t burst = 0; burst < inputs; burst += kBurst) {
      const uint32_t values = std::min(kBurst, inputs - burst);
      if (!resident) counted.input_bytes += uint64_t{rows} * values * 2;
      counted.most_bytes = std::max<uint64_t>(counted.most_bytes,
                                              uint64_t{rows} * (results + (resident ? inputs : values)) * 2);
      for (uint32_t o = first; o < first + results; ++o) {
        for (uint32_t i = burst; i < burst + values; ++i) ++counted.weights[size_t{o} * inputs + i];
      }
    }
  }
  return counted;
}

// A burst has 32 values. 4 KiB hold 2,048 values.
TEST(NdpCore, ReadsAsAProductInTilesDoes) {
  NdpCoreDescription small = core();
  small.buffer_bytes = 4096;
  for (const uint32_t rows : {1u, 2u, 7u, 16u, 32u}) {
    for (const uint32_t inputs : {1u, 32u, 96u, 480u, 1000u}) {
      for (const uint32_t outputs : {1u, 33u, 480u, 1500u}) {
        SCOPED_TRACE(testing::Message() << rows << " rows, " << inputs << " x " << outputs);
        const Counted counted = count(small.buffer_bytes, rows, inputs, outputs);
        const ProductReads reads = small.product_reads(rows, inputs, outputs);
        EXPECT_EQ(std::ranges::count(counted.weights, reads.weights), std::ssize(counted.weights));
        EXPECT_DOUBLE_EQ(reads.input_bytes, static_cast<double>(counted.input_bytes));
        EXPECT_LE(counted.most_bytes, small.buffer_bytes);
      }
    }
  }
}

// OPT-66B's projection of q, k and v has 9,216 inputs and 27,648 outputs. With fourteen rows, 256 KiB hold
// all inputs and a burst of results. With sixteen they hold 8,192 values a row, so four tiles of 8,160
// results read 294,912 bytes of inputs each, and all weights, 510 MB, are read once.
TEST(NdpCore, MoreRowsThanTheBufferHoldsReadInputsAgainAndNoWeights) {
  EXPECT_DOUBLE_EQ(core().product_reads(1, 9216, 27'648).input_bytes, 0);
  EXPECT_DOUBLE_EQ(core().product_reads(14, 9216, 27'648).input_bytes, 0);
  const ProductReads sixteen = core().product_reads(16, 9216, 27'648);
  EXPECT_EQ(sixteen.weights, 1u);
  EXPECT_DOUBLE_EQ(sixteen.input_bytes, 4 * 294'912);
}

// 256 KiB hold, for each of 2,048 rows, 64 bytes of inputs and 64 of results.
TEST(NdpCore, WeightsAreReadAgainForRowsOfWhichNoBurstIsHeld) {
  EXPECT_EQ(core().product_reads(2048, 9216, 27'648).weights, 1u);
  EXPECT_EQ(core().product_reads(2049, 9216, 27'648).weights, 2u);
}

// 1,000 values are four turns of 256 units.
TEST(NdpCore, TheActivationUnitDoesWhatIsNoProduct) {
  EXPECT_DOUBLE_EQ(core().relu_seconds(1000), 4e-9);
  EXPECT_DOUBLE_EQ(core().elementwise_seconds(1000), 8e-9);
  EXPECT_DOUBLE_EQ(core().exponential_seconds(1000), 12e-9);
}

}  // namespace
}  // namespace tierd
