// Cycles are computed by hand; the comment of each test has the arithmetic. ACT activates a row, RD reads one
// burst of 64 bytes. After the last RD, data takes tCL + tBL = 28 cycles more.
#include "core/time/ddr4_timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/time/ddr4_3200.h"
#include "tests/time/ddr4_commands.h"

namespace tierd {
namespace {

uint64_t cycles(const Ddr4Description& dimm, const std::vector<ByteRange>& ranges) {
  Ddr4Reads reads(dimm);
  for (const ByteRange& range : ranges) reads.read(range.begin, range.bytes);
  return reads.cycles();
}

// Returns the cycles where both must agree exactly.
uint64_t exactly(const Ddr4Description& dimm, const std::vector<ByteRange>& ranges) {
  const uint64_t found = cycles(dimm, ranges);
  EXPECT_EQ(Ddr4Commands(dimm).cycles(ranges), found);
  return found;
}

// ACT at 0, RD at tRCD = 24, data until 24 + 24 + 4 = 52: 32.5 ns.
TEST(Ddr4Timing, OneRowMiss) {
  EXPECT_EQ(exactly(one_rank(2, 4), {{0, 64}}), 52u);
  EXPECT_DOUBLE_EQ(ddr4_3200().seconds(52), 32.5e-9);
  EXPECT_EQ(exactly(ddr4_3200(), {{0, 256}}), 52u) << "each rank reads its burst meanwhile";
  EXPECT_EQ(exactly(ddr4_3200(), {{63, 2}}), 52u) << "two bursts of two ranks";
  EXPECT_EQ(exactly(ddr4_3200(), {}), 0u);
}

// A row of 8 KiB has 128 bursts. In one bank group a RD follows after tCCD_L = 8: 24 + 127 * 8 + 28 = 1068
// cycles. In two groups, alternating and with a row in each, after tCCD_S = 4; the second group's ACT, at
// tRRD_S = 4, is in time for its RD at 28: 24 + 127 * 4 + 28 = 560 cycles.
TEST(Ddr4Timing, HitsInOneBankGroupAndInTwo) {
  EXPECT_EQ(exactly(one_rank(1, 4), {{0, 8192}}), 1068u);
  EXPECT_EQ(exactly(one_rank(2, 4), {{0, 8192}}), 560u);
  EXPECT_DOUBLE_EQ(one_rank(1, 4).streaming_rate(), 12.8e9);
  EXPECT_DOUBLE_EQ(one_rank(2, 4).streaming_rate(), 25.6e9);
  EXPECT_DOUBLE_EQ(ddr4_3200().streaming_rate(), 102.4e9);
}

// Two bursts in each of four rows, in four banks of both groups. ACT at 0, 4, 8, 12, since tRRD_S = 4 and, in
// the same group, tRRD_L = 6 is over by then. A fifth has to wait for tFAW: at 26, then 30, 34, 38. Its RD at
// 38 + 24 = 62, data until 90. Without tFAW the last ACT would be at 28, and data until 80.
TEST(Ddr4Timing, ManyActivationsWaitForEachOther) {
  const std::vector<ByteRange> rows = {{0, 128}, {16384, 128}, {32768, 128}, {49152, 128}};
  Ddr4Description dimm = one_rank(2, 4);
  EXPECT_EQ(exactly(dimm, rows), 90u);
  dimm.faw = 0;
  EXPECT_EQ(cycles(dimm, rows), 80u);
  // An ACT and a RD are both due at 24; the twin has one command bus and is a cycle later.
  EXPECT_EQ(Ddr4Commands(dimm).cycles(rows), 81u);
  // ACT at 0, 4; 12, 16; 24, 28; 36, 40: each group's own activations are tRRD_L apart. 40 + 24 + 28 = 92.
  dimm.rrd_l = 12;
  EXPECT_EQ(cycles(dimm, rows), 92u);
}

// One burst in each of three rows of one bank: ACT at 0, 76, 152, since tRC = 76 exceeds reading and closing
// (24 + 4 + 24); RD at 176, data until 204.
TEST(Ddr4Timing, RowsOfOneBankAreOpenedOneAfterTheOther) {
  EXPECT_EQ(exactly(one_rank(1, 1), {{0, 64}, {8192, 64}, {16384, 64}}), 204u);
  // A whole row first: its last RD at 24 + 127 * 8 = 1040; closed at 1044, ACT at 1068, RD at 1092, data
  // until 1120.
  EXPECT_EQ(exactly(one_rank(1, 1), {{0, 8192}, {8192, 64}}), 1120u);
  // In another bank the row is open by then: RD at 1048, data until 1076.
  EXPECT_EQ(exactly(one_rank(1, 2), {{0, 8192}, {8192, 64}}), 1076u);
  // An open row is not opened again: RD at 24 and 32, data until 60.
  EXPECT_EQ(exactly(one_rank(1, 1), {{0, 64}, {4096, 64}}), 60u);
}

// 1 MiB are 4096 bursts of each rank: 24 + 4095 * 4 + 28 = 16,432 cycles, 10.27 us, 102.1 GB/s of 102.4.
TEST(Ddr4Timing, ALongRunStreams) {
  EXPECT_EQ(exactly(ddr4_3200(), {{0, 1 << 20}}), 16'432u);
  const double seconds = ddr4_3200().seconds(16'432);
  EXPECT_NEAR((1 << 20) / seconds, 102.1e9, 0.05e9);
}

std::vector<ByteRange> neurons(std::mt19937& random, uint32_t count, uint64_t bytes, uint32_t of) {
  std::vector<uint32_t> all(of);
  for (uint32_t i = 0; i < of; ++i) all[i] = i;
  std::shuffle(all.begin(), all.end(), random);
  all.resize(count);
  std::sort(all.begin(), all.end());
  std::vector<ByteRange> ranges;
  for (const uint32_t neuron : all) ranges.push_back({neuron * bytes, bytes});
  return ranges;
}

// Neurons in ascending order, as in messages, of sizes from a burst to bundles of OPT-66B in f16. The closed
// form by rows is within 0.1 % of the commands, and mostly equal.
TEST(Ddr4Timing, AgreesWithTheCommandsOnNeurons) {
  std::mt19937 random(1);
  for (const uint64_t bytes : {64, 320, 1152, 2304, 5184, 8192, 18'432, 36'864}) {
    for (const uint32_t of : {80, 400}) {
      const std::vector<ByteRange> ranges = neurons(random, 60, bytes, of);
      const auto exact = static_cast<double>(Ddr4Commands(ddr4_3200()).cycles(ranges));
      EXPECT_NEAR(static_cast<double>(cycles(ddr4_3200(), ranges)) / exact, 1, 0.001)
          << bytes << " of " << of;
    }
  }
}

// Unrealistic DIMMs, places and sizes: within 25 %, and within 1 % on average. The difference: the commands
// may open a row before one that is needed earlier but waits for its bank.
TEST(Ddr4Timing, AgreesWithTheCommandsOnAnyList) {
  std::mt19937 random(2);
  const auto draw = [&](uint32_t least, uint32_t most) {
    return std::uniform_int_distribution<uint32_t>(least, most)(random);
  };
  double sum = 0;
  constexpr int kLists = 400;
  for (int list = 0; list < kLists; ++list) {
    Ddr4Description dimm = ddr4_3200();
    dimm.ranks = draw(1, 4);
    dimm.bank_groups = draw(1, 4);
    dimm.banks_per_group = draw(1, 4);
    dimm.row_bytes = 256u << draw(0, 5);
    dimm.rcd = draw(10, 30);
    dimm.rp = draw(10, 30);
    dimm.rc = dimm.rcd + dimm.rp + draw(4, 40);
    dimm.ccd_l = draw(4, 20);
    dimm.rrd_l = draw(4, 10);
    dimm.faw = draw(0, 60);
    std::vector<ByteRange> ranges;
    for (uint32_t i = draw(1, 40); i > 0; --i)
      ranges.push_back({draw(0, 1 << 20), draw(1, 1 << draw(6, 14))});
    const auto exact = static_cast<double>(Ddr4Commands(dimm).cycles(ranges));
    const double ratio = static_cast<double>(cycles(dimm, ranges)) / exact;
    sum += ratio;
    EXPECT_NEAR(ratio, 1, 0.25) << list;
  }
  EXPECT_NEAR(sum / kLists, 1, 0.01);
}

}  // namespace
}  // namespace tierd
