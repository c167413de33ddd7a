// The store keeps tier-compare's verdict on a lossy configuration. tierd prints the verdict at start, and
// refuses a configuration whose loss is too large.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/e2e/server.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

const std::string kTables = kDemo + "/predictor-r64.safetensors";
const std::string kHeldOut = kDemo + "/held-out.txt";

class MeasuredLossOfRuns : public ProgramTest {
 protected:
  // Without tables of parents, a state table misses most of the neurons that fire.
  static std::vector<std::string> arguments_of(const std::string& configuration) {
    std::vector<std::string> arguments = {"--config", config_file(configuration), "-m", kDemo, "-t", "1"};
    if (configuration == "papers/hermes")
      arguments.insert(arguments.end(), {"--set", "predictor.rule=reaches"});
    return arguments;
  }
  static Ended run(const std::string& configuration, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = arguments_of(configuration);
    arguments.insert(arguments.end(), {"--temp", "0"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (std::ranges::find(more, "--check") == more.end())
      arguments.insert(arguments.end(), {"-p", "To be", "-n", "3"});
    return run_tierd(arguments);
  }
  static Ended compare(const std::string& configuration, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = arguments_of(configuration);
    arguments.insert(arguments.end(), {kHeldOut, "--tokens", "60", "-q"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(TIERD_BIN_COMPARE, arguments);
  }
  // Returns the only verdict that was kept.
  std::string kept() const {
    std::string file;
    for (const auto& entry : fs::recursive_directory_iterator(cache())) {
      if (entry.path().parent_path().filename() != "losses") continue;
      EXPECT_EQ(file, "") << entry.path();
      file = entry.path().string();
    }
    return file;
  }
};

TEST_F(MeasuredLossOfRuns, IsSaidAndRefusedBeyondTheLimit) {
  const Ended before = run("papers/hermes");
  EXPECT_EQ(before.status, 0) << before.err;
  EXPECT_THAT(before.err, HasSubstr("loss not measured; measure it with tier-compare --config "));
  const Ended compared = compare("papers/hermes");
  ASSERT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("kept in " + kept()));

  const Ended after = run("papers/hermes");
  EXPECT_EQ(after.status, 2);
  EXPECT_EQ(after.out, "");
  EXPECT_EQ(std::ranges::count(after.err, '\n'), 1) << after.err;
  for (const char* part :
       {"measured loss: KL ", "on only 60 tokens of held-out.txt", "more than 0.1 nats", "--force"})
    EXPECT_THAT(after.err, HasSubstr(part));
  EXPECT_EQ(run("papers/hermes", {"-q"}).status, 2);
  std::vector<std::string> served = arguments_of("papers/hermes");
  served.insert(served.begin(), "serve");
  served.insert(served.end(), {"--port", "0"});
  const Ended server = run_tierd(served);
  EXPECT_EQ(server.status, 2) << server.err;
  EXPECT_THAT(server.err, HasSubstr("--force"));

  const Ended forced = run("papers/hermes", {"--force"});
  EXPECT_EQ(forced.status, 0) << forced.err;
  EXPECT_EQ(forced.out, before.out);
  EXPECT_THAT(forced.err, HasSubstr("measured loss: KL "));
  const Ended check = run("papers/hermes", {"--check"});
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("loss         KL "));
  EXPECT_EQ(compare("papers/hermes").status, 0) << "it is judged again";
}

TEST_F(MeasuredLossOfRuns, StandsInPlanAndReport) {
  const std::vector<std::string> tables = {"--set", "predictor.tensors=" + kTables};
  ASSERT_EQ(compare("llm-in-a-flash", tables).status, 0);
  std::vector<std::string> as_json = tables;
  as_json.insert(as_json.end(), {"--json", "--check"});
  const json plan = json::parse(run("llm-in-a-flash", as_json).out, nullptr, false);
  EXPECT_LT(plan["loss"]["measured"]["divergence"], 0.1);
  as_json.pop_back();
  const json report = json::parse(run("llm-in-a-flash", as_json).out, nullptr, false)["report"];
  EXPECT_EQ(report["loss"], plan["loss"]);
  const json& measured = report["loss"]["measured"];
  EXPECT_EQ(measured["tokens"], 60);
  EXPECT_EQ(measured["text"], "held-out.txt");
  EXPECT_EQ(measured["against"], "file");
  EXPECT_GT(measured["used"]["neurons"], 0.0);
  EXPECT_LT(report["used"]["neurons"], 0.5);
  EXPECT_EQ(report["used"]["asked"]["threshold"], 0.5);
  const Ended text = run("llm-in-a-flash", tables);
  EXPECT_EQ(text.status, 0) << text.err;
  for (const char* part : {"\nmeasured loss: KL ", "  loss         KL ", "  used         "})
    EXPECT_THAT("\n" + text.err, HasSubstr(part));
  // Other settings have a verdict of their own.
  std::vector<std::string> other = tables;
  other.insert(other.end(), {"--set", "predictor.threshold=0.6"});
  EXPECT_THAT(run("llm-in-a-flash", other).err,
              HasSubstr("loss not measured; measure it with tier-compare "));
}

TEST_F(MeasuredLossOfRuns, OfLosslessConfigurationsNothingIsSaid) {
  for (const char* configuration : {"hybrid", "resident", "hermes", "endor"}) {
    const std::vector<std::string> dense = {"--set", "model.compression=none"};
    const Ended ended = run(configuration, dense);
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_THAT(ended.err, Not(HasSubstr("loss "))) << configuration;
    const Ended compared = compare(configuration, dense);
    EXPECT_THAT(compared.out, Not(HasSubstr("kept"))) << configuration;
  }
  const json check = json::parse(run("hybrid", {"--check", "--json"}).out, nullptr, false);
  EXPECT_TRUE(check["loss"].is_null());
  EXPECT_EQ(kept(), "");
}

// The command in the message can be typed as it is, whatever characters its file names have.
TEST_F(MeasuredLossOfRuns, IsMeasuredByTheCommandThatIsNamed) {
  const std::string odd = folder().path() + "/it's $HOME";
  fs::create_directories(odd);
  const std::string configuration = odd + "/my flow.toml";
  fs::copy_file(config_file("papers/activeflow"), configuration);
  fs::copy_file(kHeldOut, odd + "/text.txt");
  fs::create_symlink(TIERD_BIN_COMPARE, odd + "/tier-compare");
  const std::vector<std::string> arguments = {
      "--config", configuration, "-m",    kDemo,   "-p",
      "To be",    "-n",          "3",     "-c",    "128",
      "-t",       "1",           "--fit", "--set", "tiers.dram.capacity=50%"};
  const std::string said = run_tierd(arguments).err;
  const std::string before = "loss not measured; measure it with ", after = "\n";
  const size_t from = said.find(before);
  ASSERT_NE(from, std::string::npos) << said;
  const size_t begin = from + before.size();
  const std::string command = said.substr(begin, said.find(after, begin) - begin);
  EXPECT_THAT(command, HasSubstr(" -c 128 "));
  const Ended measured = run_program(
      "/bin/sh",
      {"-c",
       "cd \"$1\" && PATH=.:$PATH && TIERD_PLUGIN_PATH=\"$2\" && export TIERD_PLUGIN_PATH && " + command,
       "sh", odd, TIERD_PLUGIN_DIR});
  ASSERT_EQ(measured.status, 0) << command << "\n" << measured.err;
  EXPECT_THAT(run_tierd(arguments).err, HasSubstr("measured loss: KL "));
}

TEST_F(MeasuredLossOfRuns, ThatIsDamagedIsNamed) {
  ASSERT_EQ(compare("papers/hermes").status, 0);
  const std::string file = kept();
  std::ofstream(file, std::ios::trunc) << "{\"divergence\": 0";
  const Ended damaged = run("papers/hermes");
  EXPECT_EQ(damaged.status, 2);
  EXPECT_THAT(damaged.err, HasSubstr(file));
  EXPECT_THAT(damaged.err, HasSubstr("remove the file, or measure it again with tier-compare "));
  EXPECT_EQ(run("papers/hermes", {"--force"}).status, 0);
  EXPECT_THAT(run("papers/hermes", {"--check"}).out, HasSubstr(file));
  ASSERT_EQ(compare("papers/hermes").status, 0);
  EXPECT_THAT(run("papers/hermes").err, HasSubstr("measured loss: KL ")) << "it was measured anew";
}

TEST_F(MeasuredLossOfRuns, ThatCannotBeKeptIsPrintedAllTheSame) {
  ASSERT_EQ(run("papers/hermes").status, 0);
  for (const std::string& store : cached()) std::ofstream(cache() + "/" + store + "/losses") << "no folder";
  const Ended compared = compare("papers/hermes");
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("the verdict was not kept: " + cache()));
  EXPECT_THAT(compared.out, HasSubstr("perplexity"));
}

// The rows of one step share the set that a cache-aware mask uses.
TEST_F(MeasuredLossOfRuns, OfManyRowsAtOnceIsNotKept) {
  const Ended compared =
      compare("activeflow", {"--set", "tiers.dram.capacity=50%", "-c", "128", "--step-tokens", "32"});
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("the verdict was not kept: several tokens of a step"));
}

// A mask that depends on residency has a measured loss for one capacity only.
TEST_F(Server, SaysTheLossOfAnotherCapacity) {
  const std::vector<std::string> lossy = {
      "--config", config_file("activeflow"),  "--set", "predictor.sparsity=0.95", "--set", "run.ubatch=8",
      "--set",    "tiers.dram.staging=256KiB"};
  std::vector<std::string> served = lossy;
  served.insert(served.end(), {"--set", "tiers.dram.capacity=70%"});
  start(served);
  const auto move = [&](const std::string& capacity) {
    return post("/v1/tiers/dram/capacity", {{"capacity", capacity}});
  };
  const HttpAnswer unknown = move("40%");
  ASSERT_EQ(unknown.status, 200u) << unknown.body;
  const json loss = json::parse(unknown.body)["loss"];
  EXPECT_TRUE(loss["measured"].is_null());
  EXPECT_THAT(loss["command"], HasSubstr("--set tiers.dram.capacity=40%"));
  ASSERT_EQ(move("70%").status, 200u);
  std::vector<std::string> judged = lossy;
  judged.insert(judged.end(), {"--set", "tiers.dram.capacity=40%", "-m", kDemo, "-c", "256", "-t", "1",
                               kHeldOut, "--tokens", "60", "-q"});
  const Ended compared = run_program(TIERD_BIN_COMPARE, judged);
  ASSERT_EQ(compared.status, 0) << compared.err;
  const HttpAnswer refused = move("40%");
  EXPECT_EQ(refused.status, 400u) << refused.body;
  EXPECT_THAT(error_of(refused), HasSubstr("measured loss: KL "));
  EXPECT_THAT(error_of(refused), HasSubstr("on only 60 tokens of held-out.txt"));
  EXPECT_THAT(error_of(refused), HasSubstr("--force"));
  EXPECT_THAT(end().err, HasSubstr("loss not measured; measure it with tier-compare "));
}

}  // namespace
}  // namespace tierd
