// Figures of a report mean what their names say: parts add up to sums, printed actions took place, and absent
// hardware costs nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ReportFigures : public ProgramTest {
 protected:
  static Ended run(std::vector<std::string> more, int tokens = 40) {
    std::vector<std::string> arguments = {
        "-p", "First Citizen:", "-n", std::to_string(tokens), "--temp", "0", "-c", "128", "-t",
        "1",  "--ignore-eos"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_tierd(arguments);
  }
  static json report(std::vector<std::string> more) {
    more.emplace_back("--json");
    const Ended ended = run(more);
    EXPECT_EQ(ended.status, 0) << ended.err;
    return json::parse(ended.out, nullptr, false)["report"];
  }
  static std::vector<std::string> with(std::vector<std::string> arguments, std::vector<std::string> more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  // Eight DIMMs, and a GPU with room for some hot neurons. Neurons that do not fire are left out.
  static std::vector<std::string> hermes() {
    return {"--config",
            config_file("hermes"),
            "-m",
            kDemo,
            "--fit",
            "--set",
            "tiers.gpu.capacity=6.4MB",
            "--set",
            "tiers.gpu.backend=host",
            "--set",
            "predictor.name=low-rank",
            "--set",
            "predictor.tensors=" + kDemo + "/predictor-r64.safetensors"};
  }
};

TEST_F(ReportFigures, UnitsAreThoseThatComputed) {
  const json r = report(hermes());
  const json& units = r["units"];
  ASSERT_EQ(units["tiers"].size(), 2u) << units.dump(2);
  EXPECT_EQ(units["window"], 5);
  double shares = 0, neurons = 0;
  for (const json& tier : units["tiers"]) {
    const bool dimms = tier["tier"] == "ndp";
    const auto each = tier["neurons_of_unit"].get<std::vector<double>>();
    EXPECT_EQ(each.size(), dimms ? 8u : 1u);
    const double sum = std::accumulate(each.begin(), each.end(), 0.0);
    EXPECT_NEAR(sum, tier["computed_share"].get<double>() * units["neurons"].get<double>(), 1e-6);
    shares += tier["computed_share"].get<double>();
    neurons += sum;
    EXPECT_GT(tier["slowest_ms"].get<double>(), 0);
    EXPECT_GE(tier["slowest_ms"].get<double>(), tier["mean_ms"].get<double>());
    EXPECT_GE(tier["slowest_ms"].get<double>(), 6 * tier["layer_ms"].get<double>() * (1 - 1e-9));
    EXPECT_EQ(tier["imbalance"].is_null(), !dimms);
    if (!dimms) continue;
    EXPECT_GT(tier["imbalance"].get<double>(), 1);
    EXPECT_LE(tier["imbalance"].get<double>(), 8);
    // The counts of the sites add up to that of the tier.
    double of_sites = 0;
    for (const json& site : units["sites"]) {
      for (const json& of : site["tiers"]) {
        const auto counts = of["neurons"].get<std::vector<double>>();
        if (of["tier"] == "ndp") of_sites += std::accumulate(counts.begin(), counts.end(), 0.0);
      }
    }
    EXPECT_NEAR(of_sites, sum * units["steps"].get<double>(), 1e-3) << "DIMMs compute networks alone";
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_NEAR(neurons, units["neurons"].get<double>(), 1e-6);
  const json& idle = r["idle_windows"];
  EXPECT_GE(idle["windows"].get<double>(), 6) << "the projection of each layer";
  EXPECT_GT(idle["neurons"].get<double>(), 0);
  EXPECT_GT(idle["hidden_share"].get<double>(), 0);
  EXPECT_LE(idle["hidden_share"].get<double>(), 1);
  // The balancer's metrics describe its plan, and their names say so.
  for (const auto& [name, value] : r["strategies"]["balancer"]["metrics"].items()) {
    EXPECT_EQ(name.find("imbalance") != std::string::npos, name.starts_with("planned imbalance")) << name;
  }
  EXPECT_THAT(run(hermes()).err, AllOf(HasSubstr("  units        computed "),
                                       HasSubstr(" as executed (most / mean, "), HasSubstr("load of ndp: "),
                                       HasSubstr("computing a token: "), HasSubstr("  idle         ")));
}

// All bytes on a link are payload (weights) or padding, reported separately.
TEST_F(ReportFigures, PaddingIsNotPayload) {
  const json r = report(hermes());
  ASSERT_GE(r["links"].size(), 4u);
  for (const json& link : r["links"]) {
    const std::string name = link["from"].get<std::string>() + " to " + link["to"].get<std::string>();
    EXPECT_EQ(link["payload_bytes"].get<uint64_t>() + link["padding_bytes"].get<uint64_t>(),
              link["bytes"].get<uint64_t>())
        << name;
    EXPECT_NEAR(link["decode_payload_bytes"].get<double>() + link["decode_padding_bytes"].get<double>(),
                link["decode_bytes"].get<double>(), 1e-3)
        << name;
    EXPECT_EQ(link["neurons"].get<uint64_t>() != 0, link["payload_bytes"].get<uint64_t>() != 0) << name;
  }
  EXPECT_THAT(run(hermes()).err, HasSubstr(" of weights, "));
}

// Bitmaps differ in size from neuron to neuron. A slot has the padded size of the largest bitmap, but a move
// carries only the neuron's own bytes.
TEST_F(ReportFigures, BitmapsCrossTheLinkPacked) {
  const std::string pruned = folder().path() + "/pruned";
  const Ended made = run_program(TIERD_BIN_PRUNE, {kDemo, pruned, "--method", "magnitude", "--share", "0.5",
                                                   "--compression", "bitmap", "-q"});
  ASSERT_EQ(made.status, 0) << made.err;
  const auto crossed = [&](const char* config) {
    const json r =
        report({"--config", config_file(config), "-m", pruned, "--fit", "--set", "tiers.gpu.capacity=4MB",
                "--set", "tiers.gpu.backend=host", "--set", "tiers.gpu.link_rate=0"});
    for (const json& link : r["links"]) {
      if (link["from"] == "dram" && link["to"] == "gpu") return link;
    }
    ADD_FAILURE() << r["links"].dump(2);
    return json();
  };
  for (const char* config : {"endor", "ablation/endor-expand"}) {
    const json link = crossed(config);
    EXPECT_GT(link["decode_bytes"].get<double>(), 1e6) << config << ": it streams";
    EXPECT_GE(link["payload_bytes"].get<double>(), 0.98 * link["bytes"].get<double>()) << config << link;
    EXPECT_GE(link["decode_payload_bytes"].get<double>(), 0.98 * link["decode_bytes"].get<double>())
        << config;
  }
  // The text equals that of weights that never move.
  const auto text = [&](std::vector<std::string> with) {
    const Ended ended = run(std::move(with));
    EXPECT_EQ(ended.status, 0) << ended.err;
    return ended.out;
  };
  EXPECT_EQ(text({"--config", config_file("endor"), "-m", pruned, "--fit", "--set", "tiers.gpu.capacity=4MB",
                  "--set", "tiers.gpu.backend=host", "--set", "tiers.gpu.link_rate=0"}),
            text({"--config", config_file("resident"), "-m", pruned}));
}

// If the GPU holds every neuron, the DIMMs have nothing to compute. The report says so and names a remedy
// that works.
TEST_F(ReportFigures, AGpuThatHoldsEverythingIsNamedWithARemedy) {
  const std::vector<std::string> all = {
      "--config", config_file("hermes"),    "-m",    kDemo,
      "--set",    "tiers.gpu.backend=host", "--set", "tiers.gpu.capacity=64MB"};
  const json units = report(all)["units"];
  EXPECT_EQ(units["alone"]["tier"], "gpu");
  const std::string err = run(all).err;
  const std::string line = "gpu holds every neuron: no unit of ndp computes one; give gpu less: --set ";
  const size_t at = err.find(line);
  ASSERT_NE(at, std::string::npos) << err;
  const size_t begin = at + line.size();
  const std::string remedy = err.substr(begin, err.find('\n', begin) - begin);
  EXPECT_THAT(remedy, testing::StartsWith("tiers.gpu.capacity="));
  const json less = report(with(all, {"--set", remedy}))["units"];
  EXPECT_TRUE(less["alone"].is_null());
  for (const json& tier : less["tiers"]) {
    EXPECT_GT(tier["computed_share"].get<double>(), 0.05) << tier;
    EXPECT_LT(tier["computed_share"].get<double>(), 0.95) << tier;
  }
}

TEST_F(ReportFigures, OneUnitHasNobodyToBeComparedWith) {
  const json r = report({"--config", config_file("resident"), "-m", kDemo});
  EXPECT_TRUE(r["units"].is_null());
  EXPECT_TRUE(r["idle_windows"].is_null());
}

}  // namespace
}  // namespace tierd
