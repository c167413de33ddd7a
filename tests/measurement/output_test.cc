// Tests each form of the report on blocks with known figures.
#include "tools/measurement/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/report/figure_json.h"
#include "tests/measurement/known_figures.h"
#include "tools/measurement/report.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Report, FiguresOfADecodeTest) {
  const TestFigures test = test_figures(result(), kLayers);
  EXPECT_DOUBLE_EQ(test.tokens_per_second.median, 1.0);
  EXPECT_DOUBLE_EQ(test.tokens_per_second.least, 0.8);
  EXPECT_DOUBLE_EQ(test.tokens_per_second.most, 1.25);
  EXPECT_EQ(test.blocks, 3);
  EXPECT_EQ(test.repeated, 1);
  EXPECT_EQ(test.samples.size(), 3u);
  ASSERT_TRUE(test.limit);
  const BenchLimitFigures& limit = *test.limit;
  EXPECT_DOUBLE_EQ(limit.tokens_per_second, 2.0);  // 2 GB at 4 GB/s
  EXPECT_DOUBLE_EQ(limit.ratio.median, 0.5);
  EXPECT_DOUBLE_EQ(limit.memory_ms, 100);
  EXPECT_EQ(limit.terms_within_20_percent, false);
  EXPECT_DOUBLE_EQ(limit.share_of_memory_bandwidth, 0.1);
  const TokenFigures& token = test.per_token;
  EXPECT_NEAR(token.step_ms, 30.5e3 / 30, 1e-6);
  EXPECT_NEAR(token.kernel_overhead_percent, 10, 1e-6);
  EXPECT_DOUBLE_EQ(token.wanted_bytes, 2e9);
  EXPECT_DOUBLE_EQ(token.messages, 5);
  EXPECT_DOUBLE_EQ(token.handovers_per_layer, 2);
  EXPECT_NEAR(token.io_ms, 1000, 1e-6);  // the flash figures are of eleven steps
  EXPECT_DOUBLE_EQ(token.reads, 8);      // likewise
  EXPECT_DOUBLE_EQ(token.bytes_per_read, 250e6);
  EXPECT_DOUBLE_EQ(test.memory.bytes, 1.5e9);
  EXPECT_DOUBLE_EQ(test.memory.weight_bytes, 1e9);
  EXPECT_EQ(test.cache, (std::map<std::string, double>{{"k", 3.5}}));
  ASSERT_TRUE(test.energy);
  const BenchEnergyFigures& energy = *test.energy;
  EXPECT_DOUBLE_EQ(energy.joules_per_token, 32);
  EXPECT_DOUBLE_EQ(energy.grams_per_token, 0.003);
  EXPECT_DOUBLE_EQ(energy.embodied_grams_per_token, 0.001);
  EXPECT_DOUBLE_EQ(energy.watts.at("processor"), 30);
  EXPECT_EQ(energy.sources,
            (std::map<std::string, std::string>{{"processor", "RAPL"}, {"dram", "modelled"}}));
  EXPECT_THAT(energy.not_counted, ElementsAre("gpu (tiers.gpu: the host stands for it)"));
}

TEST(Report, PredictionIsTheMeanOverSites) {
  Measurement sparse = result();
  EXPECT_FALSE(test_figures(sparse, kLayers).prediction);
  SiteUse use;
  use.rows = 10;
  use.used = 200;  // 20 of 100
  for (Round& round : sparse.rounds) round.ours.foreseen = {{100, use}, {300, use}};
  const auto unmeasured = test_figures(sparse, kLayers).prediction;
  ASSERT_TRUE(unmeasured);
  EXPECT_DOUBLE_EQ(unmeasured->used_share, 0.1);
  EXPECT_FALSE(unmeasured->loss);
  use.measured_rows = 2;
  use.predicted = 40;
  use.active = 20;
  use.missed = 5;
  use.mass = 8;
  use.missed_mass = 1;
  sparse.rounds.front().ours.foreseen.back().use = use;
  const auto measured = test_figures(sparse, kLayers).prediction;
  ASSERT_TRUE(measured && measured->loss);
  EXPECT_DOUBLE_EQ(measured->loss->recall, 0.75);
  EXPECT_DOUBLE_EQ(measured->loss->precision, 0.375);
  EXPECT_DOUBLE_EQ(measured->loss->missed_mass, 0.125);
}

TEST(Report, APromptHasNoLimit) {
  Measurement prefill = result();
  prefill.test = {Workload::Kind::prefill, 10};
  const BenchFigures report = report_of(prefill);
  EXPECT_FALSE(report.tests.front().limit);
  const std::string text = to_text(report, Format::md);
  EXPECT_THAT(text, HasSubstr("| pp10 | 1.00 |"));
}

TEST(Report, PeerBesideOurs) {
  Measurement both = result();
  for (Round& round : both.rounds) round.peer = PeerRun{0.5, 20};
  Arguments arguments;
  arguments.peer = PeerArguments{"peer --rate", {}, false};
  const PeerFigures peer = peer_figures(arguments, both, 10'000'000);
  EXPECT_DOUBLE_EQ(peer.ours_tokens_per_second, 1.0);
  EXPECT_DOUBLE_EQ(peer.tokens_per_second.median, 0.5);
  EXPECT_DOUBLE_EQ(peer.ratio, 2.0);
  BenchFigures report = report_of(both);
  report.peer = peer;
  EXPECT_THAT(to_text(report, Format::md), HasSubstr("| tg10 | 1.00 | 0.500 | 0.500 – 0.500 | 2.00 | 3 |"));
}

TEST(Output, TablesForAPerson) {
  const std::string text = to_text(report_of(result()), Format::md);
  EXPECT_THAT(text,
              HasSubstr("| tg10 | 1.00 | 0.800 – 1.25 | 2.00 | 0.500 | 4.00 GB/s | 40.0 GB/s | 10 % | 3 |"));
  EXPECT_THAT(text, HasSubstr("- tg10: 1 rounds were repeated"));
  EXPECT_THAT(text,
              HasSubstr("- tg10: 32 J and 3 mgCO2 a token, 1 mg of it embodied; dram 2 W modelled, processor "
                        "30 W RAPL, not counted: gpu (tiers.gpu: the host stands for it)\n"));
  EXPECT_THAT(text, HasSubstr("configs/hybrid.toml --set a=1"));
  EXPECT_THAT(text, HasSubstr("memory cgroup at most 1.50 MB, limit 2.00 MB"));
  EXPECT_THAT(text, HasSubstr("commit abc"));
}

TEST(Output, NamesTheText) {
  BenchFigures report = report_of(result());
  EXPECT_THAT(to_text(report, Format::md), HasSubstr("- random tokens from an empty context, 1 before them"));
  report.run.text = TextFigures{"a.txt", 64};
  report.run.uncounted_tokens = 16;
  EXPECT_THAT(to_text(report, Format::md), HasSubstr("- text a.txt, 64 tokens, continued greedily"));
}

TEST(Output, JsonIsTheReport) {
  const BenchFigures report = report_of(result());
  EXPECT_EQ(json::parse(to_text(report, Format::json)), figures_json(report));
}

TEST(Output, CsvHasOneLineATestWithTheSameColumns) {
  Measurement prefill = result();
  prefill.test = {Workload::Kind::prefill, 10};
  BenchFigures report = report_of(prefill);
  report.tests.push_back(test_figures(result(), kLayers));
  std::istringstream text(to_text(report, Format::csv));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3u);
  const auto names = cells(lines[0]);
  const auto first = cells(lines[1]);
  const auto second = cells(lines[2]);
  EXPECT_EQ(first.size(), names.size());
  EXPECT_EQ(second.size(), names.size());
  const auto column = [&](const std::string& name) {
    return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  ASSERT_LT(column("test.limit.ratio.median"), names.size());
  EXPECT_EQ(first[column("test.test")], "\"pp10\"");
  EXPECT_EQ(first[column("test.limit.ratio.median")], "");
  EXPECT_EQ(second[column("test.limit.ratio.median")], "0.5");
  EXPECT_EQ(second[column("run.cpu")], "\"A \"\"CPU\"\"\"");
}

}  // namespace
}  // namespace tierd
