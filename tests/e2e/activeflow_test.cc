// Runs the shipped ActiveFlow configurations on the embedded model through the command line.
#include <gmock/gmock.h>

#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

using nlohmann::json;

class ActiveFlowCli : public ProgramTest {
 protected:
  static json generated(const std::string& configuration, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"--config", config_file(configuration),
                                          "-m",       kDemo,
                                          "-p",       "First Citizen:",
                                          "-n",       "24",
                                          "--temp",   "0",
                                          "-t",       "1",
                                          "--json",   "-q",
                                          "--fit"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended run = run_tierd(arguments);
    EXPECT_EQ(run.status, 0) << configuration << ": " << run.err;
    return json::parse(run.out, nullptr, false);
  }
  static uint64_t count(const json& run, const char* key) {
    return run["report"]["neurons"][key].get<uint64_t>();
  }
};

TEST_F(ActiveFlowCli, LeavingNothingOutIsLossless) {
  const json resident = generated("resident", {"--set", "model.layout=channel-group"});
  const json flow = generated("activeflow", {"--set", "predictor.sparsity=0"});
  EXPECT_EQ(flow["text"], resident["text"]);
}

// With mask "largest", neither the layer group nor the cache may change a token: both only decide what is
// read ahead, in which sizes, and what stays resident.
TEST_F(ActiveFlowCli, NeitherGroupsNorCachesChangeTheText) {
  const json flow = generated("activeflow", {"--set", "predictor.mask=largest"});
  for (const char* other : {"n0", "n1", "n2", "n4", "n8", "no-cache", "task-cache", "fading-cache"})
    EXPECT_EQ(generated(std::string("ablation/activeflow-") + other)["text"], flow["text"]) << other;
}

// A cache-aware mask uses every resident channel. With all channels resident, it loses nothing.
TEST_F(ActiveFlowCli, WithEnoughMemoryACacheAwareMaskIsLossless) {
  const json resident = generated("resident", {"--set", "model.layout=channel-group"});
  EXPECT_EQ(generated("activeflow")["text"], resident["text"]);
}

// With less memory, a cache-aware mask loses no more of the inputs' energy than choosing the largest inputs
// does. The same command gives the same text.
TEST_F(ActiveFlowCli, WithLessMemoryACacheAwareMaskLosesNoMoreThanTheLargest) {
  const std::vector<std::string> less = {"--set", "tiers.dram.capacity=60%", "--set",
                                         "tiers.flash.gap=16KiB"};
  const json flow = generated("activeflow", less);
  const json& metrics = flow["report"]["strategies"]["predictor"]["metrics"];
  EXPECT_GT(metrics["energy_lost"].get<double>(), 0.0);
  EXPECT_LE(metrics["energy_lost"].get<double>(), metrics["energy_lost_by_largest"].get<double>());
  EXPECT_GT(count(flow, "staged"), 0u) << "nothing was read ahead";
  EXPECT_EQ(generated("activeflow", less)["text"], flow["text"]);
}

// Prediction one layer ahead is mostly right, so fewer channels miss than without prefetching.
TEST_F(ActiveFlowCli, TheNextLayerIsForeseen) {
  const json with = generated("ablation/activeflow-n1");
  const json without = generated("ablation/activeflow-n0");
  EXPECT_EQ(count(without, "staged"), 0u);
  EXPECT_GT(count(with, "staged") + count(with, "hits"), count(without, "hits"));
  EXPECT_LT(count(with, "misses"), count(without, "misses"));
  EXPECT_EQ(count(with, "prefetch_failed"), 0u);
}

// tier-plan prints the table of its search, and flags with which tierd runs.
TEST_F(ActiveFlowCli, ThePlanIsShownAndItsFlagsRun) {
  const std::vector<std::string> plan = {"--config", config_file("activeflow"), "-m", kDemo,
                                         "--set",    "tiers.dram.capacity=60%"};
  const Ended shown = run_program(TIERD_BIN_PLAN, plan);
  ASSERT_EQ(shown.status, 0) << shown.err;
  for (const char* word : {"measured: DRAM", "operator", "sparsity 0.4", "eq. 1", "steady", "<-",
                           "--set predictor.sparsity=0.4", "--set model.layer_group=", "Lossless "}) {
    EXPECT_THAT(shown.out, testing::HasSubstr(word));
  }
  std::vector<std::string> run = plan;
  std::istringstream flags(shown.out.substr(shown.out.find("\n  --set ")));
  for (std::string word; flags >> word;) run.push_back(word);
  run.insert(run.end(), {"-p", "First Citizen:", "-n", "8", "--temp", "0"});
  const Ended ran = run_tierd(run);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(run_tierd({"-m", kDemo, "--plan"}).err, testing::HasSubstr("tier plan --config FILE -m MODEL"));
}

// A capacity of 25 % holds neither the embedded model's head nor the channels of one layer beside the KV
// cache. The plan counts both as read again for each token.
TEST_F(ActiveFlowCli, ThereIsAPlanWhereNoLayerFits) {
  const Ended ended =
      run_program(TIERD_BIN_PLAN, {"--config", config_file("activeflow"), "-m", kDemo, "--set",
                                   "tiers.dram.capacity=25%", "-c", "256", "--json", "--sparsity", "0.5"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json plan = json::parse(ended.out, nullptr, false);
  EXPECT_EQ(plan["chosen"]["layer_group"], 0);
  EXPECT_EQ(plan["cache_aware"]["kept"], 0.0);
  EXPECT_GT(plan["cache_aware"]["flash_bytes_per_token"], 0.0);
}

// The plan's resident channels are those that fit beside the weights that every token reads whole.
TEST_F(ActiveFlowCli, ThePlanKeepsChannelsBesideTheHead) {
  const std::vector<std::string> asked = {"--config", config_file("activeflow"), "-m", kDemo, "--json",
                                          "--set",    "tiers.dram.capacity=60%"};
  std::vector<std::string> checked = asked;
  checked.emplace_back("--check");
  const json plan = json::parse(run_program(TIERD_BIN_PLAN, asked).out, nullptr, false);
  const json check = json::parse(run_tierd(checked).out, nullptr, false);
  ASSERT_TRUE(plan.is_object() && check.is_object());
  const json& budget = check["tiers"][0]["budget"];
  const double resident = budget["lines"]["resident weights"];
  const double beside =
      budget["capacity_bytes"].get<double>() - resident - budget["lines"]["staging"].get<double>();
  const double whole = plan["fixed_bytes"].get<double>() - beside;  // the head, which is also the embedding
  EXPECT_NEAR(plan["cache_aware"]["kept"], (resident - whole) / (plan["tensor_bytes"].get<double>() - whole),
              0.01);  // biases and norms are not channels
}

// Attention uses its largest inputs; the experts that the router chooses are fetched whole.
TEST_F(ActiveFlowCli, AMixtureIsSparseInAttentionAndFetchesTheChosenExperts) {
  const std::string mixtral = TIERD_SOURCE_DIR "/tests/golden/models/gguf-mixtral-f32/model.gguf";
  const auto ran = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--config", config_file("activeflow"),
                                          "-m",       mixtral,
                                          "-p",       "",
                                          "-n",       "12",
                                          "--temp",   "0",
                                          "-t",       "1",
                                          "--fit",    "--ignore-eos",
                                          "--set",    "predictor.mask=largest",
                                          "--set",    "scheduler.measure_every=4",
                                          "--set",    "tiers.dram.capacity=30%"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_tierd(arguments);
  };
  const json report = json::parse(ran({"--json", "-q"}).out, nullptr, false)["report"];
  ASSERT_EQ(report["experts"].size(), 2u);
  for (const json& layer : report["experts"]) {
    EXPECT_EQ(layer["experts"], 4);
    EXPECT_EQ(layer["used"], 2.0);
    EXPECT_GT(layer["hits"].get<int>() + layer["staged"].get<int>() + layer["misses"].get<int>(), 0);
  }
  size_t of_attention = 0;
  for (const json& site : report["prediction"]) {
    ++of_attention;
    EXPECT_LE(site["used"].get<double>(), 0.51 * site["neurons"].get<double>());
    if (site["measured_rows"] == 0) continue;
    EXPECT_GT(site["missed_mass"].get<double>(), 0.0);
  }
  EXPECT_EQ(of_attention, 4u) << "qkv and o of two layers";
  EXPECT_THAT(ran({}).err, testing::HasSubstr("2 of 4 a token: "));
}

// Works in every layout, and says which cut of experts the store has.
TEST_F(ActiveFlowCli, AMixturesPlanIsWholeExpertsOrTheirChannels) {
  const std::string shape = folder().write("mixture.toml", R"(architecture = "mixtral"
n_layers = 2
d_model = 128
n_heads = 4
n_kv_heads = 2
head_dim = 32
d_ff = 512
n_experts = 8
experts_per_token = 2
expert_weights_sum_to_one = true
vocab_size = 320
context_length = 128
norm = "rms"
norm_eps = 1e-05
activation = "silu"
gated = true
position = "rope_half"
rope_theta = 10000.0
)");
  const auto planned = [&](const char* configuration, const std::string& layout,
                           const std::vector<std::string>& more, const std::string& experts = "whole") {
    const std::string store = folder().path() + "/" + layout + experts;
    const std::vector<std::string> made = {"--shape", shape,       "--encoding", "f16", "--layout",
                                           layout,    "--experts", experts,      "-q",  store};
    EXPECT_EQ(run_program(TIERD_BIN_SYNTH, made).status, 0);
    std::vector<std::string> plan = {"--config", config_file(configuration), "-m", store,
                                     "--set",    "tiers.dram.capacity=50%"};
    plan.insert(plan.end(), more.begin(), more.end());
    const Ended ended = run_program(TIERD_BIN_PLAN, plan);
    EXPECT_EQ(ended.status, 0) << ended.err;
    return ended.out;
  };
  const std::string shown = planned("moe-streaming", "row", {});
  for (const char* word : {"measured: DRAM", "2 of 8 experts of 393 kB in each of 2 layers",
                           "% of the experts", " tokens/s", "Reading ahead what the next layer's router",
                           "Experts in channels, a part of which is left out. A cache-aware mask",
                           "% of the channels resident of attention and "}) {
    EXPECT_THAT(shown, testing::HasSubstr(word));
  }
  const json whole = json::parse(planned("activeflow", "channel-group", {"--json"}), nullptr, false);
  EXPECT_EQ(whole["experts_of_store"], "whole");
  const json cut =
      json::parse(planned("moe-streaming", "channel-group", {"--json"}, "channels"), nullptr, false);
  EXPECT_EQ(cut["experts_of_store"], "channels");
  EXPECT_GT(cut["cache_aware"]["energy_lost_by_largest"], 0.0);
}

// A disk reads whole blocks. Only a layer group makes channels smaller than a block contiguous.
TEST_F(ActiveFlowCli, ChannelsThatAreAllSmallerThanABlockAreWarnedOf) {
  const auto said = [&](const char* configuration) {
    return run_tierd({"--config", config_file(configuration), "-m", kDemo, "-p", "To", "-n", "1", "--temp",
                      "0", "--set", "tiers.dram.capacity=60%"})
        .err;
  };
  EXPECT_THAT(said("activeflow"), testing::HasSubstr("channels have at most 2048 bytes"));
  EXPECT_THAT(said("ablation/activeflow-n4"), testing::Not(testing::HasSubstr("channels have at most")));
}

TEST_F(ActiveFlowCli, WhatCannotBePlannedIsSaid) {
  const Ended rows = run_program(TIERD_BIN_PLAN, {"--config", config_file("hybrid"), "-m", kDemo});
  EXPECT_EQ(rows.status, 2);
  EXPECT_THAT(rows.err, testing::HasSubstr("is about layout channel-group, the store has layout row"));
  const Ended share =
      run_program(TIERD_BIN_PLAN, {"--config", config_file("activeflow"), "-m", kDemo, "--sparsity", "1.5"});
  EXPECT_EQ(share.status, 2);
  EXPECT_THAT(share.err, testing::HasSubstr("--sparsity"));
}

}  // namespace
}  // namespace tierd
