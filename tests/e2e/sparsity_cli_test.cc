// Records activations, predicts them and measures the loss, as a user does.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/base/random.h"
#include "core/formats/safetensors.h"
#include "tests/e2e/program.h"
#include "tests/formats/safetensors_builder.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr uint32_t kLayers = 6, kWidth = 256, kNeurons = 1024;
const std::string kText = TIERD_SOURCE_DIR "/LICENSE";
constexpr uint32_t kTokens = kSanitized ? 250 : 600;
constexpr const char* kHeldOut = kSanitized ? "510" : "2040";

class SparsityCli : public ProgramTest {
 protected:
  static Ended compare(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"-m", kDemo, kText, "--tokens", std::to_string(kTokens),
                                          "-t", "1",   "-q",  "--set",    "model.layout=neuron"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(TIERD_BIN_COMPARE, std::move(arguments));
  }
  static json compared(std::vector<std::string> more) {
    more.push_back("--json");
    const Ended ended = compare(std::move(more));
    EXPECT_EQ(ended.status, 0) << ended.err;
    return json::parse(ended.out, nullptr, false);
  }
  static Ended trace(std::vector<std::string> arguments) {
    return run_program(TIERD_BIN_TRACE, std::move(arguments));
  }
  // Writes tables of random numbers.
  std::string random_tables(uint32_t rank) const {
    SafetensorsBuilder file;
    Random random(3);
    const auto add = [&](const std::string& name, uint64_t rows, uint64_t cols) {
      std::string bytes;
      for (uint64_t i = 0; i < rows * cols; ++i) {
        const float value = random.symmetric();
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
      }
      file.add(name, "F32", {rows, cols}, bytes);
    };
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      const std::string site = "layers." + std::to_string(layer) + ".ffn";
      add(site + ".a", rank, kWidth);
      add(site + ".b", kNeurons, rank);
    }
    return folder().write("tables.safetensors", file.bytes());
  }
};

const json& site(const json& compared, const std::string& name) {
  for (const json& site : compared["sites"]) {
    if (site["site"] == name) return site;
  }
  ADD_FAILURE() << name << " is not in the report";
  static const json none;
  return none;
}

TEST_F(SparsityCli, NothingIsLostWhereNothingIsLeftOut) {
  const json dense = compared({});
  EXPECT_EQ(dense["largest_logit_difference"], 0.0);
  EXPECT_EQ(dense["perplexity"], dense["reference_perplexity"]);
  EXPECT_EQ(dense["divergence"]["most"], 0.0);
  ASSERT_EQ(dense["sites"].size(), kLayers + 1);
  for (const json& of : dense["sites"]) {
    EXPECT_EQ(of["recall"], 1.0);
    EXPECT_EQ(of["predicted"], 1.0);
    EXPECT_EQ(of["missed_mass"], 0.0);
    EXPECT_GT(of["active"], 0.001);
    EXPECT_LT(of["active"], 0.25);
  }
  // A threshold of 0 predicts every neuron, whatever the tables contain.
  const json all = compared({"--set", "predictor.name=low-rank", "--set", "predictor.threshold=0.0", "--set",
                             "predictor.tensors=" + random_tables(4)});
  EXPECT_EQ(all["largest_logit_difference"], 0.0);
  EXPECT_THAT(compare({}).out, HasSubstr("the same bits"));
}

TEST_F(SparsityCli, WhatAPredictorMissesIsTold) {
  const std::vector<std::string> guess = {"--set", "predictor.name=low-rank", "--set",
                                          "predictor.tensors=" + random_tables(4)};
  const json lossy = compared(guess);
  EXPECT_GT(lossy["largest_logit_difference"], 0.0);
  EXPECT_GT(lossy["divergence"]["mean"], 0.0);
  const json& all = site(lossy, "all");
  // Random tables predict about half of the neurons.
  EXPECT_NEAR(all["predicted"].get<double>(), 0.5, 0.1);
  EXPECT_NEAR(all["recall"].get<double>(), 0.5, 0.2);
  EXPECT_NEAR(all["false_negatives"].get<double>(), 1 - all["recall"].get<double>(), 1e-12);
  // The budget changes no result.
  std::vector<std::string> tight = guess;
  tight.insert(tight.end(),
               {"--set", "tiers.dram.capacity=50%", "--set", "cache.name=residency-window", "--fit"});
  json half = compared(tight);
  EXPECT_LT(half["dram_bytes"], lossy["dram_bytes"]);
  half["dram_bytes"] = lossy["dram_bytes"];
  EXPECT_EQ(half, lossy);
  // The chunk size changes no result: every row has neurons of its own.
  std::vector<std::string> chunks = guess;
  chunks.insert(chunks.end(), {"--set", "run.ubatch=7"});
  json small = compared(chunks);
  small["dram_bytes"] = lossy["dram_bytes"];
  small["sites"] = lossy["sites"];  // masses are added in another order
  EXPECT_EQ(small, lossy);
}

// The tables shipped with the model, on text held out from both trainings, with half of the weights resident.
// The bounds are published results for models of this size, not those of this run.
TEST_F(SparsityCli, TheTablesOfTheEmbeddedModelPredictWell) {
  const auto held_out = [](const std::string& tables, const std::string& threshold,
                           const std::string& tokens = kHeldOut) {
    const Ended ended = run_program(
        TIERD_BIN_COMPARE,
        {"--config", config_file("llm-in-a-flash"), "-m", kDemo, kDemo + "/held-out.txt", "--tokens", tokens,
         "--fit", "-q", "--json", "--set", "tiers.dram.capacity=50%", "--set",
         "predictor.tensors=" + kDemo + "/" + tables, "--set", "predictor.threshold=" + threshold});
    EXPECT_EQ(ended.status, 0) << ended.err;
    return json::parse(ended.out, nullptr, false);
  };
  const json fine = held_out("predictor-r64.safetensors", "0.5");
  EXPECT_LE(fine["dram_bytes"].get<double>(), 0.5 * fine["tensor_bytes"].get<double>() + 1);
  EXPECT_LE(site(fine, "all")["false_negatives"], 0.05);
  EXPECT_LE(site(fine, "all")["false_positives"], 0.05);
  EXPECT_LE(site(fine, "all")["missed_mass"], 0.02);
  EXPECT_LE(fine["perplexity_change"], 0.005);
  EXPECT_GT(fine["largest_logit_difference"], 0.0);
  const json coarse = held_out("predictor-r32.safetensors", "0.5");
  EXPECT_LE(site(coarse, "all")["false_negatives"], 0.10);
  EXPECT_LE(site(coarse, "all")["false_positives"], 0.07);
  EXPECT_LE(coarse["perplexity_change"], 0.01);
  EXPECT_EQ(held_out("predictor-r32.safetensors", "0.0", "255")["largest_logit_difference"], 0.0);
}

TEST_F(SparsityCli, WhoKnowsTheTruthLosesNothing) {
  const std::string first = folder().path() + "/first.trace", truth = folder().path() + "/truth.safetensors";
  const json dense = compared({"--set", "run.trace=" + first, "--step-tokens", "64"});
  ASSERT_EQ(run_program(TIERD_BIN_ACTIVITY, {"truth", first, "-o", truth}).status, 0);
  const json oracle = compared(
      {"--set", "predictor.name=oracle", "--set", "predictor.tensors=" + truth, "--step-tokens", "64"});
  EXPECT_EQ(oracle["largest_logit_difference"], 0.0);
  const json& all = site(oracle, "all");
  EXPECT_EQ(all["recall"], 1.0);
  EXPECT_LT(all["predicted"], 0.9) << "a batch is given what any of its rows uses";
  EXPECT_EQ(all["active"], site(dense, "all")["active"]);
}

TEST_F(SparsityCli, ARunThatReadsActivationsIsReplayedWithoutThem) {
  const std::string recorded = folder().path() + "/run.trace";
  const std::string tables = random_tables(4);
  for (const char* const every : {"0", "3"}) {
    const Ended run = run_tierd({"-m",      kDemo,
                                 "-p",      "First Citizen:",
                                 "-n",      "10",
                                 "--temp",  "0",
                                 "-t",      "1",
                                 "-q",      "--fit",
                                 "--trace", recorded,
                                 "--set",   "model.layout=neuron",
                                 "--set",   "predictor.name=low-rank",
                                 "--set",   "predictor.tensors=" + tables,
                                 "--set",   "cache.name=residency-window",
                                 "--set",   "tiers.dram.capacity=50%",
                                 "--set",   std::string("scheduler.measure_every=") + every});
    ASSERT_EQ(run.status, 0) << run.err;
    const Ended replayed = trace({"replay", recorded});
    EXPECT_EQ(replayed.status, 0) << replayed.out << replayed.err;
    const Ended other = trace({"what-if", recorded, "cache.name=lru"});
    EXPECT_EQ(other.status, 0) << other.out << other.err;
  }
}

// ActiveFlow, section 2.1: the inputs left out of each operator are known exactly.
TEST_F(SparsityCli, TopKLeavesOutTheSmallestInputs) {
  const auto with = [](const std::string& sparsity, const std::string& tables = "") {
    return compared({"--set", "model.layout=channel-group", "--set", "model.layer_group=4", "--set",
                     "predictor.name=top-k", "--set", "predictor.sparsity=" + sparsity, "--set",
                     "scheduler.measure_every=3", "--set", "predictor.tensors=" + tables});
  };
  EXPECT_EQ(with("0")["largest_logit_difference"], 0.0);
  const json half = with("0.5");
  EXPECT_GT(half["divergence"]["mean"], 0.0);
  EXPECT_LT(half["divergence"]["mean"], 0.5);
  EXPECT_NEAR(site(half, "layers.2.qkv")["predicted"].get<double>(), 0.5, 0.01);
  EXPECT_GT(site(half, "layers.2.qkv")["missed_mass"], 0.05);
  EXPECT_LT(site(half, "layers.2.down")["predicted"], 0.2) << "a ReLU has left out most of it";
  EXPECT_LT(site(half, "layers.2.down")["missed_mass"], 1e-3);

  const std::string thresholds = folder().path() + "/thresholds.safetensors";
  const Ended profiled =
      run_program(TIERD_BIN_PROFILE, {"-m", kDemo, kText, "-o", thresholds, "--tokens",
                                      std::to_string(kTokens), "--thresholds", "-q", "-t", "1"});
  ASSERT_EQ(profiled.status, 0) << profiled.err;
  EXPECT_EQ(with("0", thresholds)["largest_logit_difference"], 0.0);
  const json measured = with("0.5", thresholds);
  // On the text used for calibration, the mean share matches the requested one.
  EXPECT_NEAR(site(measured, "layers.2.qkv")["predicted"].get<double>(), 0.5, 0.03);
  EXPECT_NEAR(site(measured, "layers.4.up")["predicted"].get<double>(), 0.5, 0.03);
  EXPECT_LT(measured["divergence"]["mean"], 0.5);
}

TEST_F(SparsityCli, TheReportTellsWhatWasMissed) {
  const Ended run = run_tierd({"-m",     kDemo,
                               "-p",     "First Citizen:",
                               "-n",     "6",
                               "--temp", "0",
                               "-t",     "1",
                               "--json", "-q",
                               "--set",  "model.layout=neuron",
                               "--set",  "predictor.name=low-rank",
                               "--set",  "predictor.tensors=" + random_tables(4),
                               "--set",  "scheduler.measure_every=2"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json sites = json::parse(run.out)["report"]["prediction"];
  ASSERT_EQ(sites.size(), kLayers);
  for (const json& of : sites) {
    EXPECT_NEAR(of["used"].get<double>(), kNeurons / 2, kNeurons / 4);
    EXPECT_GT(of["measured_rows"], 0);
    EXPECT_LT(of["recall"], 1.0);
    EXPECT_GT(of["missed_mass"], 0.0);
  }
}

TEST_F(SparsityCli, ActivationsAreRecorded) {
  const std::string path = folder().path() + "/activations.safetensors";
  const Ended profiled = run_program(TIERD_BIN_PROFILE, {"-m", kDemo, kText, "-o", path, "--tokens",
                                                         std::to_string(kTokens), "-t", "1", "-q"});
  ASSERT_EQ(profiled.status, 0) << profiled.err;
  const auto file = File::open(path);
  ASSERT_TRUE(file.ok());
  const auto tensors = read_safetensors_header(*file);
  ASSERT_TRUE(tensors.ok()) << tensors.error().line();
  ASSERT_EQ(tensors->size(), 2 * kLayers);
  const json dense = compared({});
  for (const SafetensorsTensor& tensor : *tensors) {
    EXPECT_EQ(tensor.dtype, "F16");
    ASSERT_EQ(tensor.shape.size(), 2u);
    EXPECT_GE(tensor.shape[0], kTokens);  // plus the token that begins the text in each window
    EXPECT_LE(tensor.shape[0], kTokens + 3);
    const bool x = tensor.name.ends_with(".x");
    EXPECT_EQ(tensor.shape[1], x ? kWidth : kNeurons);
    if (x) continue;
    std::vector<uint16_t> values(tensor.bytes / 2);
    ASSERT_TRUE(file->read_exact(tensor.offset, std::as_writable_bytes(std::span(values))).ok());
    const auto fire = static_cast<double>(
        std::count_if(values.begin(), values.end(), [](uint16_t value) { return value != 0; }));
    const std::string name = tensor.name.substr(0, tensor.name.rfind('.'));
    // The comparison does not feed the last token of a window.
    EXPECT_NEAR(fire / static_cast<double>(values.size()), site(dense, name)["active"].get<double>(), 2e-3);
  }
}

TEST_F(SparsityCli, BadInputsAreRefusedInOneLine) {
  const auto refused = [&](const std::string& program, std::vector<std::string> arguments,
                           const std::string& why, int status = 2) {
    const Ended ended = run_program(program, std::move(arguments));
    EXPECT_EQ(ended.status, status) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(why));
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  };
  const std::string out = folder().path() + "/out.safetensors";
  refused(TIERD_BIN_COMPARE, {"-q", "-m", kDemo, "/nowhere"}, "/nowhere");
  refused(TIERD_BIN_COMPARE, {"-q", "-m", "/nowhere", kText}, "/nowhere");
  refused(TIERD_BIN_COMPARE, {"-q", "-m", kDemo, kText, "--skip", "100000000"}, "too few tokens");
  refused(TIERD_BIN_COMPARE, {"-q", "-m", kDemo}, "text is required");
  refused(TIERD_BIN_PROFILE, {"-q", "-m", kDemo, kText, "-o", "/nowhere/x.safetensors"}, "/nowhere");
  refused(TIERD_BIN_PROFILE, {"-q", "-m", kDemo, kText, "-o", out, "--set", "run.trace=x"}, "run.trace");
  const Ended help = run_program(TIERD_BIN_PROFILE, {"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("tier train predictor"));
  // The memory-fitting setting is refused with tables that do not say what their ranking keeps.
  refused(TIERD_BIN_COMPARE,
          {"-q", "--config", config_file("m2cache"), "-m", kDemo, kText, "--set",
           "predictor.tensors=" + random_tables(4)},
          "fit_memory drops neurons that do not fit in memory");
  // Tables of another model.
  SafetensorsBuilder file;
  file.add_f32("layers.0.ffn.a", {4, 99}, 0);
  file.add_f32("layers.0.ffn.b", {kNeurons, 4}, 0);
  refused(TIERD_BIN_COMPARE,
          {"-q", "-m", kDemo, kText, "--set", "model.layout=neuron", "--set", "predictor.name=low-rank",
           "--set", "predictor.tensors=" + folder().write("other.safetensors", file.bytes())},
          "layers.0.ffn.a should be a matrix of 256 columns, so it was made for another model or cut");
}

}  // namespace
}  // namespace tierd
