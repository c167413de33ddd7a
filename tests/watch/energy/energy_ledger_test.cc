#include "core/watch/energy/energy_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace tierd {
namespace {

using testing::DoubleNear;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr double kYear = 365.25 * 24 * 3600;
const Error kNoMeter{Code::not_found, "meters", "there are none"};

PowerDescription described() {
  PowerDescription power;
  power.path = "box.toml";
  power.grams_per_kwh = 360;  // 0.1 g/kJ
  power.processor = {.watts = 160, .embodied_kg = 16, .life_years = 4};
  power.processor_cores = 16;
  power.gpu = DevicePower{.watts = 300, .embodied_kg = 100, .life_years = 5};
  power.dram = {.watts = 0.5};
  power.flash = {.watts = 4};
  return power;
}

// A meter with the reading that the test sets.
class Told final : public EnergyMeter {
 public:
  explicit Told(std::optional<double>& joules) : joules_(joules) {}
  const char* name() const override { return "told"; }
  std::optional<double> joules() override { return joules_; }

 private:
  std::optional<double>& joules_;
};
FoundMeter told(std::optional<double>& joules) {
  return std::unique_ptr<EnergyMeter>(std::make_unique<Told>(joules));
}

const EnergyTotals::Part& part_of(const EnergyTotals& totals, EnergyPart part) {
  static const EnergyTotals::Part kNone;
  const auto found = std::ranges::find(totals.parts, part, &EnergyTotals::Part::part);
  EXPECT_NE(found, totals.parts.end()) << name(part);
  return found == totals.parts.end() ? kNone : *found;
}

// A GPU of 350 W, and M2Cache's SSD instead of 22 GB of DRAM, at equal speed.
TEST(Formula, ThePapersDramAgainstItsSsd) {
  const auto power = read_power("rtx3090-box");
  ASSERT_TRUE(power.ok()) << power.error().line();
  constexpr double kHour = 3600, kDramGb = 64, kGivenUpGb = 22;
  const auto hour_of = [&](double gb, double flash) {
    return modelled_use(*power, {1.0 / power->processor_cores, 1, gb, flash}, {kHour, kHour, kHour, kHour});
  };
  const EnergyUses before = hour_of(kDramGb, 0), after = hour_of(kDramGb - kGivenUpGb, 1);
  const auto watts = [&](const EnergyUses& uses, EnergyPart part) {
    return uses[static_cast<size_t>(part)].joules / kHour;
  };
  EXPECT_NEAR(watts(before, EnergyPart::dram) - watts(after, EnergyPart::dram), 2.23, 0.02 * 2.23);
  EXPECT_NEAR(watts(after, EnergyPart::flash) - watts(before, EnergyPart::flash), 2, 0.02 * 2);
  EXPECT_NEAR(watts(after, EnergyPart::gpu), 350, 1e-9);
  const double total_before = operational_grams(*power, sum(before).joules),
               total_after = operational_grams(*power, sum(after).joules);
  EXPECT_NEAR(100 * (total_after - total_before) / total_before, -0.1, 0.05) << "percent";
  // In grams: 256 GB of DRAM for an hour are 26 Wh.
  EXPECT_NEAR(operational_grams(*power, hour_of(256, 0)[static_cast<size_t>(EnergyPart::dram)].joules),
              26e-3 * 820, 1e-9);
  EXPECT_NEAR(sum(before).embodied_grams, 150'000 * kHour / (6 * kYear), 1e-9);
}

EnergyReading at(uint64_t seconds, uint64_t busy, uint64_t decode) {
  EnergyReading reading;
  reading.now_ns = 7 * kSecond + seconds * kSecond;
  reading.busy_ns = busy * kSecond;
  reading.decode_ns = decode * kSecond;
  reading.used = {0.25, 1, 8, 1};
  return reading;
}

TEST(Ledger, PartsAreChargedForAsLongAsTheyAreInUse) {
  EnergyLedger ledger(described(), no_meters(kNoMeter), at(0, 0, 0));
  EnergyReading loaded = at(10, 10, 0);
  loaded.flash_bytes = 1000;
  ledger.look(loaded);
  EnergyReading ended = at(30, 25, 12);  // five seconds of waiting, during which nothing is read
  ended.flash_bytes = 1000;
  ended.decoded_tokens = 24;
  ended.generated_tokens = 25;
  ledger.look(ended);
  const EnergyTotals totals = ledger.totals();
  EXPECT_EQ(totals.described_by, "box.toml");
  ASSERT_EQ(totals.parts.size(), kEnergyParts);
  EXPECT_NEAR(part_of(totals, EnergyPart::processor).run_joules, 0.25 * 160 * 25, 1e-9);
  EXPECT_NEAR(part_of(totals, EnergyPart::gpu).run_joules, 300 * 25, 1e-9);
  EXPECT_NEAR(part_of(totals, EnergyPart::dram).run_joules, 8 * 0.5 * 30, 1e-9);
  EXPECT_NEAR(part_of(totals, EnergyPart::flash).run_joules, 4 * 10, 1e-9);
  EXPECT_NEAR(part_of(totals, EnergyPart::processor).decode_joules, 0.25 * 160 * 12, 1e-9);
  EXPECT_NEAR(part_of(totals, EnergyPart::gpu).decode_joules, 300 * 12, 1e-9);
  EXPECT_NEAR(part_of(totals, EnergyPart::dram).decode_joules, 8 * 0.5 * 12, 1e-9);
  EXPECT_EQ(part_of(totals, EnergyPart::flash).decode_joules, 0);
  for (const EnergyTotals::Part& part : totals.parts) EXPECT_EQ(part.meter, "");
  EXPECT_EQ(part_of(totals, EnergyPart::gpu).why, "meters: there are none");
  EXPECT_EQ(totals.run.seconds, 30);
  EXPECT_EQ(totals.run.tokens, 25u);
  EXPECT_EQ(totals.decode.seconds, 12);
  const double joules = (40 + 300 + 4) * 12;
  EXPECT_NEAR(totals.decode.joules, joules, 1e-9);
  EXPECT_NEAR(totals.decode.watts(), 344, 1e-9);
  EXPECT_NEAR(totals.decode.joules_per_token(), joules / 24, 1e-9);
  EXPECT_NEAR(totals.decode.operational_grams, joules * 1e-4, 1e-9);
  const double embodied = 12 * (0.25 * 16'000 / (4 * kYear) + 100'000 / (5 * kYear));
  EXPECT_NEAR(totals.decode.embodied_grams, embodied, 1e-12);
  EXPECT_NEAR(totals.decode.grams_per_token(), (joules * 1e-4 + embodied) / 24, 1e-12);
  EXPECT_NEAR(totals.decode.embodied_grams_per_token(), embodied / 24, 1e-12);
}

TEST(Ledger, ABudgetThatMovesIsChargedAsItWas) {
  EnergyLedger ledger(described(), no_meters(kNoMeter), at(0, 0, 0));
  ledger.look(at(10, 10, 10));
  EnergyReading smaller = at(20, 20, 20);
  smaller.used[static_cast<size_t>(EnergyPart::dram)] = 2;
  ledger.look(smaller);
  EXPECT_NEAR(part_of(ledger.totals(), EnergyPart::dram).decode_joules, 0.5 * (8 * 10 + 2 * 10), 1e-9);
}

TEST(Ledger, WhatIsMeasuredTakesThePlaceOfTheModel) {
  std::optional<double> processor = 5000, dram = 100;
  EnergyLedger ledger(described(), {told(processor), kNoMeter, told(dram)}, at(0, 0, 0));
  processor = 5900;
  dram = 110;
  ledger.look(at(10, 10, 0));
  processor = 7900;
  dram = 150;
  ledger.look(at(30, 30, 5));  // a quarter of the time is decoding
  const EnergyTotals totals = ledger.totals();
  EXPECT_EQ(part_of(totals, EnergyPart::processor).meter, "told");
  EXPECT_EQ(part_of(totals, EnergyPart::processor).why, "");
  EXPECT_NEAR(part_of(totals, EnergyPart::processor).run_joules, 2900, 1e-9);
  EXPECT_NEAR(part_of(totals, EnergyPart::processor).decode_joules, 500, 1e-9);
  EXPECT_NEAR(part_of(totals, EnergyPart::dram).run_joules, 50, 1e-9);
  EXPECT_NEAR(part_of(totals, EnergyPart::dram).decode_joules, 10, 1e-9);
  EXPECT_EQ(part_of(totals, EnergyPart::gpu).meter, "");
  EXPECT_NEAR(totals.run.joules, 2900 + 50 + 300 * 30, 1e-9);
  EXPECT_NEAR(totals.run.operational_grams, totals.run.joules * 1e-4, 1e-9);
}

TEST(Ledger, AMeterThatFailsLeavesItsPartToTheModel) {
  std::optional<double> silent, failing = 100;
  EnergyLedger ledger(described(), {told(failing), told(silent), kNoMeter}, at(0, 0, 0));
  failing = 200;
  ledger.look(at(10, 10, 10));
  EXPECT_EQ(part_of(ledger.totals(), EnergyPart::processor).run_joules, 100);
  failing.reset();
  ledger.look(at(20, 20, 20));
  failing = 900;
  ledger.look(at(30, 30, 30));
  const EnergyTotals totals = ledger.totals();
  EXPECT_EQ(part_of(totals, EnergyPart::processor).meter, "");
  EXPECT_EQ(part_of(totals, EnergyPart::processor).why, "told has ceased to tell");
  EXPECT_NEAR(part_of(totals, EnergyPart::processor).run_joules, 0.25 * 160 * 30, 1e-9);
  EXPECT_EQ(part_of(totals, EnergyPart::gpu).why, "told does not tell");
  EXPECT_NEAR(part_of(totals, EnergyPart::gpu).run_joules, 300 * 30, 1e-9);
}

TEST(Ledger, WhatIsNotInUseIsNoPart) {
  EnergyReading begin = at(0, 0, 0), end = at(10, 10, 10);
  begin.used[static_cast<size_t>(EnergyPart::gpu)] = end.used[static_cast<size_t>(EnergyPart::gpu)] = 0;
  EnergyLedger ledger(described(), no_meters(kNoMeter), begin);
  ledger.look(end);
  const EnergyTotals totals = ledger.totals();
  EXPECT_EQ(totals.parts.size(), kEnergyParts - 1);
  EXPECT_EQ(totals.decode.joules_per_token(), 0) << "no tokens";
  EXPECT_NEAR(totals.decode.embodied_grams, 10 * 0.25 * 16'000 / (4 * kYear), 1e-12);
}

}  // namespace
}  // namespace tierd
