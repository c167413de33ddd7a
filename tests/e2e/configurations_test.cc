// Runs every configuration of configs/ on models of four kinds. Each runs, or is refused with a remedy that
// works when typed. tier-compare judges each of them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kConfigs = TIERD_SOURCE_DIR "/configs";
const std::string kTables = kDemo + "/predictor-r64.safetensors";
const std::string kHeldOut = kDemo + "/held-out.txt";
constexpr double kNoise = 16'384;  // bytes a token: one more or fewer read of embedding rows
constexpr int kMostRemedies = 5;   // the most remedies that one run may need, one after the other

// Returns the files that `tierd --config` accepts. Other folders hold shapes, machines and activity profiles.
std::vector<std::string> configurations() {
  std::vector<std::string> files;
  for (const char* folder : {"", "/papers", "/ablation", "/gpu"}) {
    for (const auto& file : fs::directory_iterator(kConfigs + folder)) {
      if (file.path().extension() == ".toml") files.push_back(file.path().string());
    }
  }
  std::ranges::sort(files);
  return files;
}

// Returns the flags of the last remedy in a line, as a user would type them.
std::vector<std::string> remedy_in(const std::string& line) {
  static const std::regex kFlags(R"(((--set \S+|--config \S+|--fit|-m \S+)( |$))+)");
  std::string last;
  for (auto found = std::sregex_iterator(line.begin(), line.end(), kFlags); found != std::sregex_iterator();
       ++found)
    last = found->str();
  std::istringstream words(last);
  std::vector<std::string> flags;
  for (std::string word; words >> word;) {
    if (word.starts_with("configs/")) word = std::string(TIERD_SOURCE_DIR "/") + word;
    while (!word.empty() && std::string_view(",;:.)").find(word.back()) != std::string_view::npos)
      word.pop_back();
    flags.push_back(word);
  }
  return flags;
}

// Adds the flags to the arguments. --config and -m replace the earlier value.
void type(std::vector<std::string>& arguments, const std::vector<std::string>& flags) {
  for (size_t i = 0; i + 1 < flags.size(); ++i) {
    if (flags[i] != "--config" && flags[i] != "-m") continue;
    const auto old = std::ranges::find(arguments, flags[i]);
    if (old != arguments.end()) arguments.erase(old, old + 2);
  }
  arguments.insert(arguments.end(), flags.begin(), flags.end());
}

class Configurations : public ProgramTest {
 protected:
  // The tests start some hundred programs, one after the other.
  void SetUp() override {
    ProgramTest::SetUp();
    constexpr unsigned kWatchdogSeconds = 900;
    alarm(kWatchdogSeconds);
  }
  // Returns a Llama with random weights. Its activation is SiLU, so no neuron is ever inactive.
  std::string silu(const std::string& encoding) const {
    return made("silu", encoding, R"(architecture = "llama")");
  }
  std::string mixture() const {
    return made("mixture", "f16", R"(architecture = "mixtral"
n_experts = 8
experts_per_token = 2
expert_weights_sum_to_one = true)");
  }

  // Runs tierd, adding each remedy that it names to the arguments, until it succeeds or names none. Returns
  // "" for success, else the errors of all runs. The arguments name configuration and model.
  static std::string outcome(std::vector<std::string>& arguments) {
    std::string said;
    for (int typed = 0; typed <= kMostRemedies; ++typed) {
      std::vector<std::string> text = arguments;
      text.insert(text.end(), {"-p", "To be", "-n", "3", "-c", "64", "--temp", "0", "-t", "1", "-q"});
      const Ended run = run_tierd(text);
      if (run.status == 0) return "";
      said += "exit " + std::to_string(run.status) + ": " + run.err;
      const std::vector<std::string> flags = remedy_in(run.err.substr(0, run.err.find('\n')));
      if (run.status != 2 || flags.empty()) return said;
      type(arguments, flags);
    }
    return said + "no end of remedies";
  }
  static std::string outcome(const std::string& configuration, const std::string& model) {
    std::vector<std::string> arguments = {"--config", configuration, "-m", model};
    return outcome(arguments);
  }

 private:
  std::string made(const std::string& name, const std::string& encoding, const std::string& more) const {
    const std::string file = folder().path() + "/" + name + "-" + encoding + ".gguf";
    if (fs::exists(file)) return file;
    const std::string shape = folder().write(name + ".toml", more + R"(
n_layers = 3
d_model = 256
n_heads = 4
n_kv_heads = 2
head_dim = 64
d_ff = 512
vocab_size = 512
context_length = 256
norm = "rms"
norm_eps = 1e-05
position = "rope_interleaved"
rope_theta = 10000.0
activation = "silu"
gated = true
)");
    const Ended run = run_program(TIERD_BIN_SYNTH,
                                  {"--shape", shape, "--encoding", encoding, "--format", "gguf", file, "-q"});
    EXPECT_EQ(run.status, 0) << run.err;
    return file;
  }
};

TEST_F(Configurations, RunOrNameARemedyThatWorks) {
  ASSERT_GE(configurations().size(), 55u);
  for (const std::string& configuration : configurations()) {
    EXPECT_EQ(outcome(configuration, kDemo), "") << configuration << ", demo";
    EXPECT_EQ(outcome(configuration, silu("f16")), "") << configuration << ", SiLU";
    EXPECT_EQ(outcome(configuration, silu("q4_k")), "") << configuration << ", K-quants";
    EXPECT_EQ(outcome(configuration, mixture()), "") << configuration << ", a mixture";
  }
}

TEST_F(Configurations, AStoreOfAnotherKindIsRefusedByKey) {
  const std::string store = folder().path() + "/rows";
  const Ended made = run_program(TIERD_BIN_CONVERT, {kDemo, store, "-q"});
  ASSERT_EQ(made.status, 0) << made.err;
  const auto refused = [&](const std::string& configuration, const std::string& key) {
    const std::string file = kConfigs + "/" + configuration + ".toml";
    for (const char* check : {"", "--check"}) {
      std::vector<std::string> arguments = {"--config", file, "-m", store, "-q", "-p", "To be", "-n", "2"};
      if (*check != '\0') arguments.emplace_back(check);
      const Ended run = run_tierd(arguments);
      EXPECT_EQ(run.status, 2) << configuration << run.err;
      EXPECT_THAT(run.err, HasSubstr(key + ": ")) << configuration;
      EXPECT_THAT(run.err, HasSubstr(store)) << configuration;
    }
    EXPECT_EQ(outcome(file, store), "") << configuration;
  };
  refused("endor", "model.compression");
  refused("ablation/endor-int8", "model.compression");
  refused("activeflow", "model.layout");
  refused("llm-in-a-flash", "model.layout");
  refused("m2cache", "model.layout");
  const Ended encoded =
      run_tierd({"-m", store, "-p", "To be", "-n", "2", "-q", "--set", "model.encoding=q8_0"});
  EXPECT_EQ(encoded.status, 2);
  EXPECT_THAT(encoded.err, HasSubstr("model.encoding: --set sets \"q8_0\""));
  // Without model.encoding in a file or --set, the store's encoding is accepted.
  EXPECT_EQ(run_tierd({"-m", store, "-p", "To be", "-n", "2", "-q"}).status, 0);
}

// Ranked neurons need room beside the weights that every step uses whole.
TEST_F(Configurations, AMemoryWithoutRoomForNeuronsIsRefusedBeforeAnythingIsLoaded) {
  std::vector<std::string> arguments = {"--config",
                                        kConfigs + "/m2cache.toml",
                                        "-m",
                                        kDemo,
                                        "-q",
                                        "-p",
                                        "To be",
                                        "-n",
                                        "2",
                                        "--set",
                                        "predictor.tensors=" + kTables,
                                        "--set",
                                        "tiers.gpu.capacity=4MB"};
  for (const char* check : {"", "--check"}) {
    if (*check != '\0') arguments.emplace_back(check);
    const Ended run = run_tierd(arguments);
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_THAT(run.err, HasSubstr("fit_memory: gpu lacks"));
  }
  EXPECT_EQ(cached(), std::vector<std::string>()) << "nothing was converted";
}

// tier-compare measures the loss with one token a step, as in decoding, unless the rows of a batch are
// independent of each other.
TEST_F(Configurations, AreAllJudged) {
  for (const std::string& configuration : configurations()) {
    std::vector<std::string> arguments = {"--config", configuration, "-m",     kDemo,  kHeldOut,
                                          "--tokens", "40",          "-c",     "64",   "-q",
                                          "-t",       "1",           "--json", "--fit"};
    const auto set = [&](const std::string& key_and_value) {
      arguments.insert(arguments.end(), {"--set", key_and_value});
    };
    const std::string text = file_text(configuration);
    const auto says = [&](const std::string& word) { return text.find(word) != std::string::npos; };
    if (says("name = \"low-rank\"")) set("predictor.tensors=" + kTables);
    if (says("rule = \"above\"")) set("predictor.rule=reaches");  // the demo has no tables of parents
    if (says("name = \"router\"")) set("predictor.name=dense");
    if (says("compression = \"")) set("model.compression=none");
    const Ended run = run_program(TIERD_BIN_COMPARE, arguments);
    ASSERT_EQ(run.status, 0) << configuration << run.err;
    const json verdict = json::parse(run.out, nullptr, false);
    EXPECT_GT(verdict["perplexity"], 1.0) << configuration;
    EXPECT_GE(verdict["divergence"]["mean"], 0.0) << configuration;
    const bool by_states = verdict["predictor"] == "state-table";  // its states depend on earlier steps
    const bool one_row = says("mask = \"cache-aware\"") || says("name = \"mixed\"") || by_states;
    EXPECT_EQ(verdict["step_tokens"], one_row ? 1 : 64) << configuration;
    if (says("name = \"low-rank\"") || says("name = \"top-k\"") || by_states) {
      EXPECT_GT(verdict["used"]["neurons"], 0.0) << configuration;
      EXPECT_LE(verdict["used"]["neurons"], 1.0) << configuration;
    } else if (!says("encoding = \"")) {  // otherwise activations are encoded as well
      EXPECT_EQ(verdict["perplexity"], verdict["reference_perplexity"]) << configuration;
    }
  }
}

// --check foretells the bytes that a token moves within 5 %, or says that the number is unknown.
TEST_F(Configurations, MoveTheBytesThatWereForetold) {
  size_t known = 0;
  std::map<std::string, size_t> unknown;  // by reason
  const auto hold = [&](const std::string& configuration, std::vector<std::string> arguments) {
    arguments.insert(arguments.end(),
                     {"-c", "128", "-q", "-t", "1", "--json", "--set", "tiers.dram.capacity=50%"});
    if (std::ranges::find(arguments, "--fit") == arguments.end()) arguments.emplace_back("--fit");
    std::vector<std::string> text = arguments;
    text.insert(text.end(), {"-p", "To be", "-n", "49", "--ignore-eos", "--temp", "0"});
    arguments.emplace_back("--check");
    const Ended run = run_tierd(text), check = run_tierd(arguments);
    ASSERT_EQ(run.status, 0) << configuration << run.err;
    ASSERT_EQ(check.status, 0) << configuration << check.err;
    const json report = json::parse(run.out, nullptr, false)["report"];
    const json foretold = json::parse(check.out, nullptr, false);
    const json& why = foretold["expected"]["bytes_unknown"];
    const auto expect = [&](const json& bytes, const json& settled, const std::string& what) {
      ++(bytes.is_null() ? unknown[why] : known);
      if (bytes.is_null()) return;
      EXPECT_NEAR(bytes.get<double>(), settled.get<double>(), 0.05 * settled.get<double>() + kNoise)
          << configuration << ", " << what;
    };
    expect(foretold["expected"]["flash_bytes_per_token"], report["decode"]["flash_trend"]["mean_bytes"],
           "flash");
    for (size_t l = 0; l < foretold["links"].size() && foretold["links"].size() > 1; ++l) {
      const json& link = foretold["links"][l];
      expect(link["bytes_per_token"], report["links"][l]["decode_settled_bytes"], link.dump());
    }
  };
  for (const std::string& configuration : configurations()) {
    const std::string text = file_text(configuration);
    const auto says = [&](const std::string& word) { return text.find(word) != std::string::npos; };
    std::vector<std::string> demo = {"--config", configuration, "-m", kDemo};
    if (says("name = \"low-rank\"")) demo.insert(demo.end(), {"--set", "predictor.tensors=" + kTables});
    if (says("rule = \"above\"")) demo.insert(demo.end(), {"--set", "predictor.rule=reaches"});
    if (says("name = \"router\"")) demo.insert(demo.end(), {"--set", "predictor.name=dense"});
    if (says("compression = \"")) demo.insert(demo.end(), {"--set", "model.compression=none"});
    hold(configuration, std::move(demo));
    std::vector<std::string> small = {"--config", configuration, "-m", silu("f16")};
    ASSERT_EQ(outcome(small), "") << configuration << ", SiLU";
    hold(configuration, std::move(small));
  }
  const size_t by_text = unknown["the bytes of a token depend on the text"];
  const size_t by_time =
      unknown["the bytes that are loaded ahead depend on the speeds of disk and processor"];
  EXPECT_EQ(unknown.size(), 2u) << json(unknown);
  EXPECT_GT(known, 3 * by_text) << json(unknown);
  EXPECT_GT(known, 5 * by_time) << json(unknown);
}

// The perplexity printed is that of the text fed token by token, as in decoding.
TEST_F(Configurations, AreJudgedByOneRowSteps) {
  const auto judged = [&](const std::string& step_tokens) {
    const Ended run =
        run_program(TIERD_BIN_COMPARE, {"--config", kConfigs + "/activeflow.toml", "-m", kDemo, kHeldOut,
                                        "--tokens", "200", "-c", "256", "-q", "-t", "1", "--json", "--set",
                                        "tiers.dram.capacity=50%", "--step-tokens", step_tokens});
    EXPECT_EQ(run.status, 0) << run.err;
    return json::parse(run.out, nullptr, false);
  };
  const json one = judged("1"), many = judged("64");
  EXPECT_GT(one["divergence"]["mean"], 3 * many["divergence"]["mean"].get<double>());
  EXPECT_LT(one["used"]["neurons"], many["used"]["neurons"]);
  EXPECT_EQ(one["used"]["asked"]["sparsity"], 0.5);
}

}  // namespace
}  // namespace tierd
