// The report, the JSON object and /metrics must have the same energy figures.
#include "tools/tierd/energy_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/report/figure_json.h"
#include "tools/tierd/server/api/metrics.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::Pair;

EnergyTotals totals() {
  EnergyTotals totals;
  totals.described_by = "/etc/tierd/box.toml";
  totals.grams_per_kwh = 820;
  totals.parts = {{EnergyPart::processor, "RAPL", "", 400, 1000},
                  {EnergyPart::gpu, "", "libnvidia-ml.so.1: not found", 3500, 8000},
                  {EnergyPart::dram, "", "", 1.5, 4.25},
                  {EnergyPart::flash, "", "", 20, 50}};
  totals.decode = {
      .seconds = 10, .tokens = 50, .joules = 3921.5, .operational_grams = 0.9, .embodied_grams = 0.01};
  totals.run = {
      .seconds = 25, .tokens = 51, .joules = 9054.25, .operational_grams = 2.1, .embodied_grams = 0.025};
  for (EnergyTotals::Part& part : totals.parts) {
    part.decode_seconds = totals.decode.seconds;
    part.run_seconds = totals.run.seconds;
  }
  return totals;
}

TEST(EnergyReport, LinesSayHowMuchAndWhoSaysSo) {
  EXPECT_EQ(
      energy_lines({totals()}),
      (ReportLines{
          {"energy",
           "78.4 J a token; 392 W = processor 40 measured (RAPL) + gpu 350 modelled (libnvidia-ml.so.1: "
           "not found) + dram 0.15 modelled + flash 2 modelled"},
          {"carbon",
           "18.2 mgCO2 a token, 0.2 mg of it embodied; by box, 820 g/kWh; 9.05 kJ and 2.12 gCO2 "
           "the whole run"}}));
  EnergyTotals stood_for = totals();
  stood_for.parts.erase(stood_for.parts.begin() + 1);
  stood_for.decode.joules -= 3500;
  stood_for.not_counted = {{EnergyPart::gpu, "tiers.gpu: the host stands for it"}};
  const auto lines = energy_lines({stood_for});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].second,
            "8.43 J a token; 42.1 W = processor 40 measured (RAPL) + dram 0.15 modelled + flash 2 modelled");
  EXPECT_EQ(lines[2], (std::pair<std::string, std::string>(
                          "", "not counted: gpu (tiers.gpu: the host stands for it)")));
  EnergyTotals none = totals();
  none.decode = {};
  none.parts[0].meter = "";
  none.parts[1].why = "";
  EXPECT_EQ(energy_lines({none}),
            (ReportLines{{"energy", "362 W modelled = processor 40 + gpu 320 + dram 0.17 + flash 2"},
                         {"carbon", "by box, 820 g/kWh; 9.05 kJ and 2.12 gCO2 the whole run"}}));
  EnergyTotals unknown_mass = totals();
  unknown_mass.decode.embodied_grams = 0;
  EXPECT_THAT(energy_lines({unknown_mass})[1].second,
              testing::StartsWith("18 mgCO2 a token, no embodied mass is described; by box"));
  EXPECT_THAT(energy_lines({}),
              testing::ElementsAre(Pair("energy", testing::StartsWith("unknown: run.energy names no"))));
}

TEST(EnergyReport, MetricsAgreeWithTheObject) {
  const json energy = figures_json(EnergyFigures{totals()});
  Metrics metrics({});
  ServiceState state;
  EXPECT_EQ(metrics.text(state).find("tierd_energy"), std::string::npos) << "nobody knows what is drawn";
  state.energy = totals();
  const std::string text = metrics.text(state);
  const auto value = [&](const std::string& series) {
    const size_t at = text.find("\n" + series + " ");
    EXPECT_NE(at, std::string::npos) << series << "\n" << text;
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  };
  double joules = 0;
  for (const json& part : energy["parts"]) {
    const std::string of = "{part=\"" + part["part"].get<std::string>() + "\"}";
    EXPECT_DOUBLE_EQ(value("tierd_energy_joules_total" + of), part["run_joules"].get<double>());
    EXPECT_DOUBLE_EQ(value("tierd_energy_decode_joules_total" + of), part["decode_joules"].get<double>());
    EXPECT_EQ(value("tierd_energy_measured" + of), part["source"] == "measured" ? 1 : 0);
    joules += part["run_joules"].get<double>();
  }
  EXPECT_DOUBLE_EQ(joules, energy["run"]["joules"].get<double>());
  const auto number = [&](const char* span, const char* key) { return energy[span][key].get<double>(); };
  EXPECT_DOUBLE_EQ(value("tierd_carbon_grams_total{kind=\"operational\"}"),
                   number("run", "operational_grams"));
  EXPECT_DOUBLE_EQ(value("tierd_carbon_grams_total{kind=\"embodied\"}"), number("run", "embodied_grams"));
  EXPECT_DOUBLE_EQ(value("tierd_energy_joules_per_token"), number("decode", "joules_per_token"));
  EXPECT_DOUBLE_EQ(value("tierd_carbon_grams_per_token"), number("decode", "grams_per_token"));
  EXPECT_DOUBLE_EQ(value("tierd_carbon_embodied_grams_per_token"),
                   number("decode", "embodied_grams_per_token"));
}

}  // namespace
}  // namespace tierd
