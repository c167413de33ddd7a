// Measures a runtime's energy in virtual time with a meter whose readings the test counts.
#include "core/run/run_energy.h"

#include <gtest/gtest.h>

#include "tests/e2e/virtual_run.h"

namespace tierd {
namespace {

// A meter that adds one joule per reading.
class JouleALook final : public EnergyMeter {
 public:
  explicit JouleALook(uint32_t& looks) : looks_(looks) {}
  const char* name() const override { return "looks"; }
  std::optional<double> joules() override { return ++looks_; }

 private:
  uint32_t& looks_;
};

class EnergyOfARun : public VirtualRun {
 protected:
  static constexpr uint32_t kThreads = 2;

  EnergyOfARun() : VirtualRun(kThreads, 32) {}
};

TEST_F(EnergyOfARun, PartsAreThoseOfTheRunAndMetersAreSeldomAsked) {
  const auto run = runtime();
  ASSERT_NE(run, nullptr);
  const Error none{Code::not_found, "meters", "none"};
  uint32_t looks = 0;
  RunEnergy energy(*run, {std::unique_ptr<EnergyMeter>(std::make_unique<JouleALook>(looks)), none, none});
  ASSERT_TRUE(run->load().ok());
  energy.loaded();
  EXPECT_EQ(looks, 2u);
  Engine& engine = run->engine();
  ASSERT_TRUE(engine.begin_sequence(0).ok());
  const auto progress = [&] {
    const StepTimes& decode = engine.decode_times();
    return RunProgress{decode.wall_ns, decode.tokens, decode.tokens};
  };
  constexpr uint32_t kSteps = 20;
  const uint64_t begin_ns = run->dispatcher().now_ns();
  for (uint32_t i = 0; i < kSteps; ++i) {
    const RowInfo row{.token = i, .position = i};
    const uint32_t wanted = 0;
    ASSERT_TRUE(engine.step({&row, 1}, {&wanted, 1}, false).ok());
    energy.look(progress());
  }
  const uint64_t seconds = (run->dispatcher().now_ns() - begin_ns) / 1'000'000'000;
  EXPECT_LE(looks, 2 + seconds) << "once a second";
  energy.look_now(progress());
  const auto totals = energy.totals();
  ASSERT_TRUE(totals.has_value());
  ASSERT_EQ(totals->parts.size(), 3u) << "no GPU";
  const double decode_s = static_cast<double>(engine.decode_times().wall_ns) * 1e-9;
  EXPECT_DOUBLE_EQ(totals->decode.seconds, decode_s);
  EXPECT_EQ(totals->decode.tokens, kSteps);
  EXPECT_EQ(totals->parts[0].meter, "looks");
  EXPECT_EQ(totals->parts[0].run_joules, looks - 1);
  const PowerDescription& power = *run->plan().power;
  const double dram_watts = static_cast<double>(run->budget().used()) * 1e-9 * power.dram.watts;
  EXPECT_NEAR(totals->parts[1].decode_joules / (dram_watts * decode_s), 1, 1e-9);
  EXPECT_NEAR(totals->parts[2].decode_joules / (power.flash.watts * decode_s), 1, 1e-9) << "it streams";
  ASSERT_TRUE(engine.drain().ok());
  engine.end_sequence(0);
}

TEST_F(EnergyOfARun, VirtualTimeIsNotMeasured) {
  const auto run = runtime();
  ASSERT_NE(run, nullptr);
  RunEnergy energy(*run);
  ASSERT_TRUE(run->load().ok());
  energy.loaded();
  const auto totals = energy.totals();
  ASSERT_TRUE(totals.has_value());
  const PowerDescription& power = *run->plan().power;
  for (const EnergyTotals::Part& part : totals->parts) EXPECT_EQ(part.meter, "");
  EXPECT_EQ(totals->parts[0].why, "run.clock: virtual time has no measured energy, only a computed one");
  EXPECT_NEAR(totals->parts[0].run_joules,
              power.processor.watts * kThreads / power.processor_cores * totals->run.seconds, 1e-9);
}

}  // namespace
}  // namespace tierd
