// Joules and grams as a user sees them: on the terminal, as JSON and at /metrics. In virtual time all three
// show the same values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/e2e/described_machine.h"
#include "tests/e2e/server.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPrompt = "First Citizen:";
constexpr int kTokens = 8;

class Energy : public Server {
 protected:
  void SetUp() override {
    Server::SetUp();
    write_machine(machine());
  }
  std::string machine() const { return folder().path() + "/machine.toml"; }
  // Adds the [energy] tables of a test to the machine's description.
  void describe(const std::string& energy) const { std::ofstream(machine(), std::ios::app) << energy; }
  static Ended run(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"-m",     kDemo, "-p", kPrompt,       "-n", std::to_string(kTokens),
                                          "--temp", "0",   "-c", "256",         "-t", "1",
                                          "--fit",  "-s",  "1",  "--ignore-eos"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_tierd(arguments);
  }
  static json energy_of(std::vector<std::string> more) {
    more.emplace_back("--json");
    const Ended ended = run(more);
    EXPECT_EQ(ended.status, 0) << ended.err;
    return json::parse(ended.out, nullptr, false)["report"]["energy"];
  }
  static const json& part(const json& energy, const char* name) {
    static const json kNone = json::object();
    for (const json& one : energy["parts"]) {
      if (one["part"] == name) return one;
    }
    ADD_FAILURE() << name << energy.dump(2);
    return kNone;
  }
  // Returns the number after a mark, in J or g: "12 mJ", "3 gCO2".
  static double said(const std::string& text, const std::string& mark) {
    const size_t at = text.find(mark);
    EXPECT_NE(at, std::string::npos) << text;
    if (at == std::string::npos) return -1;
    std::istringstream from(text.substr(at + mark.size()));
    double number = 0;
    std::string unit;
    from >> number >> unit;
    return unit.starts_with("m") ? number * 1e-3 : number;
  }
  // Returns a metric. The server updates it after the step that gave the last token.
  double metric(const std::string& series) const {
    const std::string text = get("/metrics").body;
    const size_t at = text.find("\n" + series + " ");
    EXPECT_NE(at, std::string::npos) << series << "\n" << text;
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  }
};

const std::string kEnergy = R"([energy]
grams_per_kwh = 360
[energy.processor]
watts = 64
cores = 8
embodied_kg = 20
life_years = 4
[energy.dram]
watts_per_gb = 0.5
[energy.flash]
watts = 3
[energy.gpu]
watts = 200
)";

TEST_F(Energy, ReportObjectAndMetricsAgree) {
  describe(kEnergy);
  const std::vector<std::string> with = {"--config", config_file("resident"),
                                         "--set",    "run.clock=model",
                                         "--set",    "run.machine=\"" + machine() + "\""};
  const json energy = energy_of(with);
  EXPECT_EQ(energy["described_by"], machine());
  EXPECT_EQ(energy["grams_per_kwh"], 360);
  const json& decode = energy["decode"];
  EXPECT_EQ(decode["tokens"], kTokens - 1);
  const double joules = decode["joules_per_token"].get<double>(),
               grams = decode["grams_per_token"].get<double>(),
               embodied = decode["embodied_grams_per_token"].get<double>();
  EXPECT_GT(joules, 0);
  EXPECT_GT(embodied, 0);
  EXPECT_NEAR(grams, joules * 1e-4 + embodied, 1e-9 * grams);
  EXPECT_EQ(part(energy, "processor")["decode_watts"], 8) << "one core";
  EXPECT_EQ(part(energy, "flash")["decode_watts"], 0) << "all is resident";
  EXPECT_GT(part(energy, "flash")["run_joules"].get<double>(), 0) << "it was loaded";
  for (const json& one : energy["parts"]) EXPECT_EQ(one["source"], "modelled");

  const Ended text = run(with);
  EXPECT_NEAR(said(text.err, "  energy       ") / joules, 1, 5e-3) << text.err;
  EXPECT_NEAR(said(text.err, "  carbon       ") / grams, 1, 5e-3) << text.err;
  EXPECT_NEAR(said(text.err, "CO2 a token, ") / embodied, 1, 5e-3) << text.err;
  EXPECT_THAT(text.err, HasSubstr(" of it embodied; by machine, 360 g/kWh; "));

  start(with);
  complete({{"prompt", kPrompt}, {"max_tokens", kTokens}, {"ignore_eos", true}});
  for (int i = 0; i < 1000 && metric("tierd_energy_joules_per_token") == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_NEAR(metric("tierd_energy_joules_per_token") / joules, 1, 1e-3);
  EXPECT_NEAR(metric("tierd_carbon_grams_per_token") / grams, 1, 1e-3);
  EXPECT_NEAR(metric("tierd_carbon_embodied_grams_per_token") / embodied, 1, 1e-3);
  const std::string processor = "{part=\"processor\"}", dram = "{part=\"dram\"}";
  EXPECT_NEAR(metric("tierd_energy_decode_joules_total" + processor) /
                  part(energy, "processor")["decode_joules"].get<double>(),
              1, 1e-9);
  // The server keeps more logits in DRAM, so its own number of used bytes is used here.
  EXPECT_NEAR(metric("tierd_energy_decode_joules_total" + dram),
              metric("tierd_used_bytes{tier=\"dram\"}") * 0.5e-9 * decode["seconds"].get<double>(), 1e-9);
  for (const std::string& of : {processor, dram}) {
    EXPECT_GT(metric("tierd_energy_joules_total" + of), metric("tierd_energy_decode_joules_total" + of));
    EXPECT_EQ(metric("tierd_energy_measured" + of), 0);
  }
}

TEST_F(Energy, EveryConfigurationReports) {
  for (const char* name : {"naive", "hybrid", "llm-in-a-flash"}) {
    std::vector<std::string> with = {"--config", config_file(name)};
    if (name == std::string("llm-in-a-flash"))
      with.insert(with.end(), {"--set", "predictor.tensors=" + kDemo + "/predictor-r64.safetensors"});
    const json energy = energy_of(with);
    EXPECT_THAT(energy["described_by"].get<std::string>(), testing::EndsWith("rtx3090-box.toml")) << name;
    EXPECT_GT(energy["decode"]["joules_per_token"].get<double>(), 0) << name;
    EXPECT_GT(energy["run"]["grams_per_token"].get<double>(), 0) << name;
    const bool reads = name != std::string("hybrid");  // hybrid keeps all weights resident
    EXPECT_EQ(part(energy, "flash")["decode_joules"].get<double>() > 0, reads) << name;
    // Whether a part is measured depends on the machine.
    for (const json& one : energy["parts"])
      EXPECT_EQ(one["source"] == "measured", !one["meter"].is_null()) << name;
  }
}

// With backend "host" the host's processor does the GPU's work, and its energy is counted. In virtual time
// the GPU is a part of the described machine and is counted.
TEST_F(Energy, AGpuThatTheHostStandsForIsNotCounted) {
  describe(kEnergy);
  const std::vector<std::string> with = {
      "--config", config_file("hybrid"),    "--set", "tiers.gpu.over=dram",
      "--set",    "tiers.gpu.backend=host", "--set", "tiers.dram.compute=false",
      "--set",    "run.dense=gpu",          "--set", "run.energy=" + machine()};
  const json energy = energy_of(with);
  double joules = 0;
  for (const json& one : energy["parts"]) {
    EXPECT_NE(one["part"], "gpu");
    joules += one["run_joules"].get<double>();
  }
  EXPECT_NEAR(energy["run"]["joules"].get<double>(), joules, 1e-9);
  ASSERT_EQ(energy["not_counted"].size(), 1u);
  EXPECT_EQ(energy["not_counted"][0]["part"], "gpu");
  EXPECT_THAT(run(with).err,
              HasSubstr("\n               not counted: gpu (tiers.gpu: the host stands for it)\n"));

  std::vector<std::string> described = with;
  described.insert(described.end(), {"--set", "run.clock=model", "--set", "run.machine=" + machine()});
  const json virtual_time = energy_of(described);
  EXPECT_NEAR(part(virtual_time, "gpu")["decode_watts"].get<double>(), 200, 1e-6);
  EXPECT_TRUE(virtual_time["not_counted"].empty());
}

TEST_F(Energy, ADescriptionThatIsWrongIsRefusedInOneLine) {
  const auto refused = [&](const std::string& description) {
    const std::string box = folder().path() + "/box.toml";
    std::ofstream(box) << description;
    const Ended ended = run({"--set", "run.energy=" + box, "--set", "tiers.gpu.over=dram"});
    EXPECT_EQ(ended.status, 2);
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(box));
    return ended.err;
  };
  EXPECT_THAT(refused("[energy]\nwats = 3\n"), HasSubstr("'energy.grams_per_kwh' is missing"));
  EXPECT_THAT(refused("[flash]\n"), HasSubstr("has no table [energy]"));
  EXPECT_THAT(refused(kEnergy.substr(0, kEnergy.find("[energy.gpu]"))),
              HasSubstr("'energy.gpu' is missing, but tiers.gpu computes on a GPU"));
  const Ended unknown = run({"--set", "run.energy=no-such-machine"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err,
              AllOf(HasSubstr("no-such-machine: no such machine; known are"), HasSubstr(", rtx3090-box")));
}

TEST_F(Energy, WhereNoDescriptionIsInstalledNothingIsKnown) {
  setenv("TIERD_CONFIGS", folder().path().c_str(), 1);
  const Ended text = run({});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.err, AllOf(HasSubstr("  energy       unknown: "), Not(HasSubstr("  carbon"))));
  EXPECT_EQ(energy_of({}).size(), 1u);
  unsetenv("TIERD_CONFIGS");
}

}  // namespace
}  // namespace tierd
