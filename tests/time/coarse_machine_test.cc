// Descriptions in closed form, as in papers, and the constants added to measured ones.
#include <gmock/gmock.h>

#include "tests/time/description_file.h"

namespace tierd {
namespace {

using testing::HasSubstr;

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

class CoarseMachines : public DescriptionFile {};

// An M1 Max (LLM in a flash): n bytes take 5.83 us and n / 11.25 GB/s, at most 6.1 GB/s. 8,192 bytes take
// 6.558 us, 16,384 take 7.286 us, 32,768 take 8.743 us and 36,352 take 9.061 us.
TEST_F(CoarseMachines, ADiskInClosedForm) {
  const auto machine = read(kCoarseMachine);
  ASSERT_TRUE(machine.ok()) << machine.error().line();
  const ReadCurve& reads = machine->disk.reads;
  const auto rate = [&](double bytes) { return bytes / reads.seconds_each(bytes) / 1e9; };
  EXPECT_NEAR(rate(4096), 0.66, 0.005);
  EXPECT_NEAR(rate(8192), 1.25, 0.005);
  EXPECT_NEAR(rate(16'384), 2.25, 0.005);
  EXPECT_NEAR(rate(32'768), 3.75, 0.005);
  EXPECT_NEAR(rate(36'352), 4.01, 0.005);
  EXPECT_NEAR(rate(49'152), 4.82, 0.01);
  EXPECT_NEAR(rate(1 << 20), 6.1, 1e-3);
  EXPECT_EQ(machine->disk.latency_ns, 5830u * 32);
}

TEST_F(CoarseMachines, ADiskThatNothingCapsOrThatIsAlwaysCapped) {
  const auto rate = [](const ReadCurve& reads, double bytes) { return bytes / reads.seconds_each(bytes); };
  const ReadCurve free = ReadCurve::of_requests(1e-6, 1e9, 1e9);
  EXPECT_NEAR(free.seconds_each(1e6), 1e-6 + 1e-3, 1e-9);
  const ReadCurve flat = ReadCurve::of_requests(0, 4e9, 2e9);
  EXPECT_DOUBLE_EQ(rate(flat, 4096), 2e9);
  EXPECT_DOUBLE_EQ(rate(flat, 1 << 20), 2e9);
  // 4 KiB take 1.41 us by the formula, but 2.05 us at the cap of 2 GB/s.
  EXPECT_DOUBLE_EQ(rate(ReadCurve::of_requests(1e-6, 10e9, 2e9), 4096), 2e9);
}

TEST_F(CoarseMachines, AProcessorWithOneRateForAllEncodings) {
  const auto machine = read(kCoarseMachine);
  ASSERT_TRUE(machine.ok()) << machine.error().line();
  for (const Encoding encoding : kAllEncodings) {
    for (const bool int8 : {false, true}) {
      EXPECT_EQ(machine->processor.rate(encoding, int8)->gemv, 200e9);
      EXPECT_EQ(machine->processor.rate(encoding, int8)->gemm, 200e9);
    }
  }
}

// Constants that neither a paper nor tier-calibrate gives are assumed; a description may set them.
TEST_F(CoarseMachines, AssumedConstantsAreKeys) {
  const auto assumed = read(kCoarseMachine);
  ASSERT_TRUE(assumed.ok()) << assumed.error().line();
  EXPECT_EQ(assumed->processor.floats_rate, 4e9);
  EXPECT_EQ(assumed->processor.after_wait_ns, 1'000'000u);
  const std::string described =
      changed(kCoarseMachine, "[compute]\n", "[compute]\nfloats_per_second = 2e9\nafter_wait_ns = 5e6\n");
  const auto said = read(described);
  ASSERT_TRUE(said.ok()) << said.error().line();
  EXPECT_EQ(said->processor.floats_rate, 2e9);
  EXPECT_EQ(said->processor.after_wait_ns, 5'000'000u);
  EXPECT_THAT(refused(changed(described, "2e9", "-1")), HasSubstr("'compute.floats_per_second'"));
  EXPECT_THAT(refused(changed(described, "5e6", "\"long\"")), HasSubstr("'compute.after_wait_ns'"));
}

TEST_F(CoarseMachines, WhatContradictsItselfIsNamed) {
  const std::string good = kCoarseMachine;
  EXPECT_THAT(refused(changed(good, "depth = 32\n", "")), HasSubstr("'flash.depth' is missing"));
  EXPECT_THAT(refused(changed(good, "depth = 32", "depth = 1.5")),
              HasSubstr("'flash.depth' is 1.5; a whole number from 1"));
  EXPECT_THAT(refused(changed(good, "depth = 32", "depth = 32\nlatency_ns = 5")),
              HasSubstr("'flash.latency_ns' is set together with 'flash.t0_ns'"));
  EXPECT_THAT(refused(changed(good, "depth = 32", "depth = 32\nreads = [{ read_bytes = 1 }]")),
              HasSubstr("'flash.t0_ns' are both set"));
  EXPECT_THAT(refused(changed(good, "cap_bytes_per_second = 6.1e9", "cap_bytes_per_second = 12e9")),
              HasSubstr("'flash.cap_bytes_per_second' is more than"));
  EXPECT_THAT(refused(changed(good, "flops = 400e9\n", "")), HasSubstr("'compute.flops' is missing"));
  EXPECT_THAT(refused(changed(good, "flops = 400e9", "flops = 400e9\nrates = []")),
              HasSubstr("'compute.bytes_per_second' are both set"));
  EXPECT_THAT(refused(changed(good, "t0_ns = 5830\n", "")), HasSubstr("'flash.reads' is missing"));
}

TEST_F(CoarseMachines, LinksMayLeadFromOneTierAlone) {
  const auto link = [](const std::string& from, const std::string& to, const char* rate) {
    return (from.empty() ? "[[links]]\n" : "[[links]]\nfrom = \"" + from + "\"\n") + "to = \"" + to +
           "\"\nbytes_per_second = " + rate + "\nlatency_ns = 7\n";
  };
  const std::string three =
      kCoarseMachine + link("ndp", "ndp", "25e9") + link("ndp", "gpu", "64e9") + link("", "gpu", "12e9");
  const auto machine = read(three);
  ASSERT_TRUE(machine.ok()) << machine.error().line();
  EXPECT_EQ(machine->link("ndp", "ndp")->rate, 25e9);
  EXPECT_EQ(machine->link("ndp", "gpu")->rate, 64e9);
  EXPECT_EQ(machine->link("dram", "gpu")->rate, 12e9) << "that from any";
  EXPECT_FALSE(machine->link("gpu", "ndp").has_value());
  EXPECT_EQ(machine->link_to("gpu")->rate, 64e9) << "the first";
  EXPECT_THAT(refused(three + link("ndp", "gpu", "1e9")), HasSubstr("'links' has two from 'ndp' to 'gpu'"));
  EXPECT_THAT(refused(changed(three, "from = \"ndp\"", "from = 3")),
              HasSubstr("'links.from' is 3; a string is expected"));
  EXPECT_THAT(refused(changed(three, "from = \"ndp\"", "from = \"\"")), HasSubstr("'links.from' is empty"));
}

constexpr const char* kUnits = R"([units.gpu]
kind = "gpu"
bytes_per_second = 936e9
flops = 330e12
launch_ns = 5000
expand_bytes_per_second = 43e9
[units.ndp]
kind = "ndp-dimm"
count = 8
[units.ndp.dram]
ranks = 4
bank_groups = 2
banks_per_group = 4
row_bytes = 8192
clock_hz = 1.6e9
t_rc = 76
t_rcd = 24
t_cl = 24
t_rp = 24
t_bl = 4
t_ccd_s = 4
t_ccd_l = 8
t_rrd_s = 4
t_rrd_l = 6
t_faw = 26
[units.ndp.core]
clock_hz = 1e9
multipliers = 256
lanes = 8
cycles_per_product = 16
buffer_bytes = 262144
exponentials = 256
additions = 256
multiplications = 256
)";

TEST_F(CoarseMachines, UnitsAreThoseOfTiers) {
  const auto machine = read(std::string(kCoarseMachine) + kUnits);
  ASSERT_TRUE(machine.ok()) << machine.error().line();
  EXPECT_EQ(machine->unit("dram"), nullptr);
  ASSERT_NE(machine->unit("gpu"), nullptr);
  const auto* gpu = std::get_if<GpuDescription>(&machine->unit("gpu")->device);
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->memory_rate, 936e9);
  EXPECT_EQ(gpu->launch_ns, 5000u);
  EXPECT_EQ(gpu->expand_rate, 43e9);
  EXPECT_EQ(machine->unit("gpu")->count, 0u) << "as many as are wanted";
  EXPECT_EQ(machine->unit("ndp")->count, 8u);
  const auto* dimm = std::get_if<NdpDimmDescription>(&machine->unit("ndp")->device);
  ASSERT_NE(dimm, nullptr);
  EXPECT_DOUBLE_EQ(dimm->dram.streaming_rate(), 102.4e9);
  EXPECT_EQ(dimm->dram.faw, 26u);
  EXPECT_DOUBLE_EQ(dimm->core.multiply_adds(), 128e9);
}

TEST_F(CoarseMachines, WhatIsWrongOfAUnitIsNamed) {
  const std::string good = std::string(kCoarseMachine) + kUnits;
  EXPECT_THAT(refused(changed(good, "kind = \"gpu\"", "kind = \"tpu\"")),
              HasSubstr("'units.gpu.kind' is 'tpu'; gpu or ndp-dimm is expected"));
  EXPECT_THAT(refused(changed(good, "kind = \"ndp-dimm\"\n", "")),
              HasSubstr("'units.ndp.kind' is missing; a string is expected"));
  EXPECT_THAT(refused(changed(good, "launch_ns = 5000\n", "")),
              HasSubstr("'units.gpu.launch_ns' is missing"));
  EXPECT_THAT(refused(changed(good, "launch_ns = 5000", "launch_ns = 5000\nwarps = 3")),
              HasSubstr("'units.gpu.warps' is unknown; known are kind, count"));
  EXPECT_THAT(refused(changed(good, "t_faw = 26\n", "")), HasSubstr("'units.ndp.dram.t_faw' is missing"));
  EXPECT_THAT(refused(changed(good, "row_bytes = 8192", "row_bytes = 8200")),
              HasSubstr("'units.ndp.dram.row_bytes' is 8200; a multiple of the burst of 64 is expected"));
  EXPECT_THAT(refused(changed(good, "multipliers = 256", "multipliers = 0")),
              HasSubstr("'units.ndp.core.multipliers' is 0"));
  EXPECT_THAT(refused(kCoarseMachine + std::string("[[units]]\nkind = \"gpu\"\n")),
              HasSubstr("'units' is of type array; a table is expected"));
  EXPECT_THAT(refused(kCoarseMachine + std::string("[units]\ngpu = 3\n")),
              HasSubstr("'units.gpu' is 3; a table is expected"));
}

// Replaces each value of a description by one of another type or out of bounds. It is refused with one line
// that names the file, or is valid (a time of 0).
TEST_F(CoarseMachines, ValuesOfWrongTypesAreRefused) {
  const std::string good =
      "links = [{ from = \"ndp\", to = \"gpu\", bytes_per_second = 1e9, latency_ns = 5 }]\n" +
      std::string(kCoarseMachine) + kUnits;
  ASSERT_TRUE(read(good).ok()) << refused(good);
  const char* const wrong[] = {"\"x\"", "true", "[1]",  "{ a = 1 }", "-1",  "inf",
                               "nan",   "1e30", "[]",   "{}",        "0",   "1979-05-27",
                               "0.5",   "\"\"", "[[]]", "[{}]",      "1e18"};
  int refusals = 0;
  for (size_t at = good.find(" = "); at != std::string::npos; at = good.find(" = ", at + 1)) {
    const size_t end = good.find_first_of(",}\n", at);
    for (const char* value : wrong) {
      const std::string text = good.substr(0, at + 3) + value + "\n" + good.substr(end);
      const auto machine = read(text);
      if (machine.ok()) continue;
      ++refusals;
      const std::string line = machine.error().line();
      EXPECT_THAT(line, HasSubstr(path())) << text.substr(at, 20);
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    }
  }
  EXPECT_GT(refusals, 500);
}

}  // namespace
}  // namespace tierd
