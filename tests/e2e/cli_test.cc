// Runs tierd as a user does: what it prints and where, and that each configuration generates the same text.
#include <gmock/gmock.h>

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/e2e/described_machine.h"
#include "tests/e2e/program.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

// Arguments that generate a few tokens of the embedded model greedily.
std::vector<std::string> demo(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"-m", kDemo, "-p", "First Citizen:", "-n", "12", "--temp",
                                        "0",  "-t",  "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

json parsed(const std::string& text) {
  json object = json::parse(text, nullptr, false);
  EXPECT_TRUE(object.is_object()) << text;
  return object;
}

class Cli : public ProgramTest {};

TEST_F(Cli, TextAloneGoesToStandardOutput) {
  const Ended run = run_tierd(demo());
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("tokens/s"));
  const Ended quiet = run_tierd(demo({"-q"}));
  EXPECT_EQ(quiet.status, 0);
  EXPECT_EQ(quiet.out, run.out);
  EXPECT_THAT(quiet.err, IsEmpty());

  const Ended as_json = run_tierd(demo({"--json"}));
  EXPECT_EQ(as_json.status, 0) << as_json.err;
  const json object = parsed(as_json.out);
  EXPECT_EQ(object.value("text", ""), run.out);
  EXPECT_FALSE(run.out.empty());
  const json report = object.value("report", json::object());
  EXPECT_EQ(report.value("generated_tokens", 0), 12);
  EXPECT_GT(report["decode"].value("tokens_per_second", 0.0), 0.0);
  EXPECT_LE(report["tiers"][0]["budget"].value("peak_bytes", uint64_t{1}),
            report["tiers"][0]["budget"].value("capacity_bytes", uint64_t{0}));
}

TEST_F(Cli, AllConfigurationsShareOneStoreAndTellOneText) {
  const Ended resident = run_tierd(demo({"--config", config_file("resident")}));
  ASSERT_EQ(resident.status, 0) << resident.err;
  for (const char* name : {"naive", "hybrid"}) {
    for (const char* share : {"25%", "50%", "75%"}) {
      const Ended run = run_tierd(demo(
          {"--config", config_file(name), "--set", std::string("tiers.dram.capacity=") + share, "--fit"}));
      EXPECT_EQ(run.status, 0) << run.err;
      EXPECT_EQ(run.out, resident.out) << name << " " << share;
    }
  }
  EXPECT_THAT(cached(), SizeIs(1));
}

TEST_F(Cli, EmptyPromptIsTheFirstTokenAlone) {
  const Ended run = run_tierd({"-m", kDemo, "-p", "", "-n", "4", "--temp", "0", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(parsed(run.out)["report"].value("prompt_tokens", 0), 1);
}

TEST_F(Cli, PromptFromAFile) {
  const Ended direct = run_tierd(demo());
  const std::string file = folder().write("prompt", "First Citizen:");
  const Ended run = run_tierd({"-m", kDemo, "-f", file, "-n", "12", "--temp", "0"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, direct.out);
}

TEST_F(Cli, ASeedGivesTheSameText) {
  const std::vector<std::string> lively = {"-m", kDemo, "-p", "The", "-n", "16", "--temp", "1.2"};
  const auto with_seed = [&](const char* seed) {
    std::vector<std::string> arguments = lively;
    arguments.insert(arguments.end(), {"-s", seed});
    const Ended run = run_tierd(arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  };
  EXPECT_EQ(with_seed("7"), with_seed("7"));
  EXPECT_NE(with_seed("7"), with_seed("8"));
}

TEST_F(Cli, NothingToGenerate) {
  const Ended zero = run_tierd({"-m", kDemo, "-p", "The", "-n", "0"});
  EXPECT_EQ(zero.status, 0) << zero.err;
  EXPECT_THAT(zero.out, IsEmpty());
}

TEST_F(Cli, EndsWhereTheContextEnds) {
  const Ended run =
      run_tierd({"-m", kDemo, "-p", "The", "-c", "20", "--ignore-eos", "--temp", "0", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json report = parsed(run.out)["report"];
  // The last token is printed and not fed to the model.
  EXPECT_EQ(report.value("prompt_tokens", 0) + report.value("generated_tokens", 0), 21);
}

TEST_F(Cli, CheckPrintsThePlanAndGeneratesNothing) {
  const Ended run = run_tierd(demo({"--check", "--set", "tiers.dram.capacity=50%"}));
  EXPECT_EQ(run.status, 0) << run.err;
  for (const char* line :
       {"budget", "KV cache", "staging", "% in networks", "per token", "rates", "expected"}) {
    EXPECT_THAT(run.out, HasSubstr(line));
  }
  const Ended as_json = run_tierd(demo({"--check", "--json", "--set", "tiers.dram.capacity=50%"}));
  EXPECT_EQ(as_json.status, 0) << as_json.err;
  const json plan = parsed(as_json.out);
  EXPECT_FALSE(plan.contains("text"));
  EXPECT_GT(plan["expected"].value("flash_bytes_per_token", 0.0), 0.0);
  // The demo's networks: 6 layers of two matrices of 256 x 1024, 2 bytes an element, of 10.4 MB in all.
  const json& weights = plan["weights"];
  EXPECT_NEAR(weights.value("networks", 0.0), 6 * 2 * 256 * 1024 * 2 / plan.value("tensor_bytes", 1.0), 0.01);
  EXPECT_GT(weights.value("in_memory", 0.0), 0.1);
  EXPECT_LT(weights.value("in_memory", 0.0), 0.5);
  EXPECT_LT(weights.value("networks_in_memory", 1.0), weights.value("in_memory", 0.0));
}

// The read bytes that the kernel counts for the process equal those that tierd reports: discarded gaps,
// repeated reads and unused prefetches included.
TEST_F(Cli, TheSystemCountsWhatIsReadAsWeDo) {
  for (const auto& [config, capacity] : std::map<std::string, std::string>{
           {"hybrid", "60%"}, {"activeflow", "50%"}, {"naive", "70%"}, {"llm-in-a-flash", "60%"}}) {
    const Ended run = run_tierd(
        {"-m", kDemo, "--config", config_file(config), "-p", "We are", "-n", "24", "--ignore-eos", "--temp",
         "0", "--set", "tiers.dram.capacity=" + capacity, "--fit", "on", "--json", "--set",
         "predictor.tensors=" + (config == "llm-in-a-flash" ? kDemo + "/predictor-r64.safetensors" : "")});
    ASSERT_EQ(run.status, 0) << run.err;
    const json report = parsed(run.out)["report"];
    const auto ours = report["flash"].value("read_bytes", 0.0);
    const auto systems = report["flash"].value("system_read_bytes", 0.0);
    EXPECT_GT(ours, 1e6) << config;
    EXPECT_NEAR(ours, systems, 0.01 * systems) << config;
    EXPECT_GE(report["decode"].value("read_bytes", 0.0), report["decode"].value("wanted_bytes", 0.0));
  }
}

// The topology is described by HWLOC_SYNTHETIC and differs from this machine's.
TEST_F(Cli, OneThreadAPhysicalCore) {
  setenv("HWLOC_SYNTHETIC", "pack:2 [numa] core:3 pu:2", 1);
  const Ended all = run_tierd({"-m", kDemo, "--check", "--json"});
  const Ended more = run_tierd({"-m", kDemo, "--check", "--json", "-t", "7"});
  unsetenv("HWLOC_SYNTHETIC");
  ASSERT_EQ(all.status, 0) << all.err;
  EXPECT_EQ(parsed(all.out)["threads"], 6);
  EXPECT_THAT(all.err, Not(HasSubstr("run.threads")));
  ASSERT_EQ(more.status, 0) << more.err;
  EXPECT_EQ(parsed(more.out)["threads"], 7);
  EXPECT_THAT(
      more.err,
      HasSubstr("run.threads: 7 threads are slower than one for each core, and this process has 6 cores"));
}

// Returns the number of bytes in "needs at least 3.2 MiB (3355443 bytes".
uint64_t least_of(const std::string& line) {
  const size_t open = line.find(" (", line.find("at least"));
  uint64_t bytes = 0;
  if (open != std::string::npos) std::from_chars(line.data() + open + 2, line.data() + line.size(), bytes);
  return bytes;
}

TEST_F(Cli, TheLeastBudgetIsExact) {
  const Ended refused =
      run_tierd(demo({"--config", config_file("hybrid"), "--set", "tiers.dram.capacity=1%"}));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.out, IsEmpty());
  const uint64_t least = least_of(refused.err);
  ASSERT_GT(least, 0u) << refused.err;
  const auto with = [&](uint64_t bytes) {
    return run_tierd(
        demo({"--config", config_file("hybrid"), "--set", "tiers.dram.capacity=" + std::to_string(bytes)}));
  };
  const Ended enough = with(least);
  EXPECT_EQ(enough.status, 0) << enough.err;
  EXPECT_EQ(enough.out, run_tierd(demo()).out);
  const Ended less = with(least - 1);
  EXPECT_EQ(less.status, 2);
  EXPECT_EQ(least_of(less.err), least);

  const Ended fitted = run_tierd(
      demo({"--config", config_file("hybrid"), "--set", "tiers.dram.capacity=1%", "--fit", "--json"}));
  EXPECT_EQ(fitted.status, 0) << fitted.err;
  const json report = parsed(fitted.out)["report"];
  EXPECT_EQ(report["tiers"][0]["budget"].value("capacity_bytes", uint64_t{0}), least);
  const json& flash = report["flash"];
  uint64_t reads = 0;
  for (const auto& [size, count] : flash["reads_of_size"].items()) reads += count.get<uint64_t>();
  EXPECT_EQ(flash.value("reads", uint64_t{0}), reads);
  EXPECT_GT(reads, 0u);
  EXPECT_EQ(flash.value("read_bytes", uint64_t{0}),
            flash.value("asked_bytes", uint64_t{1}));  // rows have no gaps
  EXPECT_GT(flash.value("busy_bytes_per_second", 0.0), 0.0);
  EXPECT_EQ(flash.value("gap_from", ""), "no extent is small");
  EXPECT_EQ(flash.value("bounced_from", ""), "no extent is small");
  EXPECT_EQ(parsed(fitted.out)["text"], enough.out);
}

// The report has the forecast of virtual time. A predictor that needs activations has no forecast.
TEST_F(Cli, AForecastStandsBesideTheRate) {
  const std::string machine = folder().path() + "/machine.toml";
  write_machine(machine);
  const std::vector<std::string> with = {"--set", "run.machine=\"" + machine + "\""};
  std::vector<std::string> arguments = demo(with);
  const Ended text = run_tierd(arguments);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.err, HasSubstr("tokens/s in virtual time, by " + machine));
  arguments.emplace_back("--json");
  const json first = parsed(run_tierd(arguments).out)["report"],
             second = parsed(run_tierd(arguments).out)["report"];
  EXPECT_EQ(first["clock"], "wall");
  EXPECT_GT(first["forecast"].value("tokens_per_second", 0.0), 0.0);
  EXPECT_EQ(first["forecast"], second["forecast"]) << "virtual time is always the same";
  arguments.insert(arguments.end(), {"--config", config_file("activeflow"), "--fit"});
  EXPECT_THAT(parsed(run_tierd(arguments).out)["report"]["forecast"].value("unknown", ""),
              HasSubstr("'trace' computes no activations, which the predictor reads"));
  arguments = demo(with);
  arguments.insert(arguments.end(), {"--json", "--set", "run.clock=model"});
  const json modelled = parsed(run_tierd(arguments).out);
  EXPECT_EQ(modelled["report"]["clock"], "model");
  EXPECT_EQ(modelled["text"], text.out);
  EXPECT_NEAR(modelled["report"]["decode"].value("tokens_per_second", 0.0) /
                  first["forecast"].value("tokens_per_second", 1.0),
              1, 0.05);
}

// One memory over another gives the same text, and the report lists both tiers.
TEST_F(Cli, AChainOfTiersTellsTheSameText) {
  const Ended plain = run_tierd(demo());
  const std::vector<std::string> chain = {
      "--set", "tiers.near.kind=dram",    "--set", "tiers.near.over=dram",
      "--set", "tiers.near.capacity=60%", "--set", "tiers.dram.compute=false",
      "--set", "tiers.dram.capacity=70%", "--set", "cache.name=lru"};
  std::vector<std::string> arguments = chain;
  arguments.emplace_back("--json");
  const Ended run = run_tierd(demo(arguments));
  ASSERT_EQ(run.status, 0) << run.err;
  const json object = parsed(run.out);
  EXPECT_EQ(object.value("text", ""), plain.out);
  const json& tiers = object["report"]["tiers"];
  ASSERT_THAT(tiers, SizeIs(3));
  EXPECT_EQ(tiers[0]["tier"], "dram");
  EXPECT_EQ(tiers[0]["computes"], false);
  EXPECT_FALSE(tiers[0]["budget"]["lines"].contains("KV cache"));
  EXPECT_EQ(tiers[1]["over"], "dram");
  EXPECT_TRUE(tiers[1]["budget"]["lines"].contains("KV cache"));
  EXPECT_FALSE(tiers[1]["budget"]["lines"].contains("plugin tables"));
  ASSERT_THAT(object["report"]["links"], SizeIs(2));
  for (const json& link : object["report"]["links"]) {
    const auto bytes = link["bytes"].get<double>(), each = link["decode_bytes"].get<double>();
    EXPECT_GT(each, 0);
    EXPECT_LT(each * object["report"]["decode"]["steps"].get<double>(), bytes) << "prefill and load, too";
    EXPECT_GT(link["decode_busy_ms"].get<double>(), 0);
  }
  const Ended told = run_tierd(demo(chain));
  for (const char* line : {"  dram  ", "  near  ", "flash to dram: ", "dram to near: "})
    EXPECT_THAT(told.err, HasSubstr(line));
  arguments = chain;
  arguments.emplace_back("--check");
  const Ended check = run_tierd(demo(arguments));
  EXPECT_EQ(check.status, 0) << check.err;
  for (const char* line : {"from flash to dram", "from dram to near"})
    EXPECT_THAT(check.out, HasSubstr(line));
}

TEST_F(Cli, AGpuThatTheHostStandsForSaysSo) {
  const std::vector<std::string> gpu = {"--set", "tiers.dram.compute=false", "--set", "tiers.gpu.over=dram",
                                        "--set", "tiers.gpu.capacity=60%"};
  const Ended plain = run_tierd(demo());
  const Ended run = run_tierd(demo(gpu));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, plain.out);
  for (const char* line : {"threads, host, ", "  gpu  ", "given activations", "dram to gpu: "})
    EXPECT_THAT(run.err, HasSubstr(line));
  std::vector<std::string> slow = gpu;
  for (const char* argument : {"--check", "--set", "tiers.gpu.link_rate=\"1 MB\""})
    slow.emplace_back(argument);
  EXPECT_THAT(run_tierd(demo(slow)).out, HasSubstr("bound by a link"));

  std::vector<std::string> direct = gpu;
  for (const char* argument : {"--set", "tiers.gpu.direct=true", "--set", "tiers.gpu.capacity=40%", "--set",
                               "tiers.dram.capacity=30%", "--fit"})
    direct.emplace_back(argument);
  const Ended read = run_tierd(demo(direct));
  EXPECT_EQ(read.status, 0) << read.err;
  EXPECT_EQ(read.out, plain.out);
  for (const char* line :
       {"reads of flash are staged through the host's memory (this machine stands for the GPU); ",
        "all verified", "direct reads", "flash to gpu: "})
    EXPECT_THAT(read.err, HasSubstr(line));
  direct.emplace_back("--check");
  for (const char* line : {"reads directly what no tier below holds", "direct reads", "from flash to gpu"})
    EXPECT_THAT(run_tierd(demo(direct)).out, HasSubstr(line));
}

// The example program uses the engine as a library.
TEST_F(Cli, TheExampleTellsTheSameText) {
  const Ended plain = run_tierd(demo());
  const Ended run = StartedProgram(TIERD_BIN_EXAMPLE, {config_file("hybrid"), "First Citizen:", "12",
                                                       std::string("model.path=") + kDemo})
                        .wait();
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, plain.out);
  const Ended none =
      StartedProgram(TIERD_BIN_EXAMPLE, {config_file("hybrid"), "x", "1", "model.path=none"}).wait();
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("none"));
}

TEST_F(Cli, AStoreIsAModelToo) {
  const std::string store = folder().path() + "/store";
  const Ended made = run_program(TIERD_BIN_CONVERT, {kDemo, store, "--verify"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("on disk"));
  const Ended run = run_tierd({"-m", store, "-p", "First Citizen:", "-n", "12", "--temp", "0", "-t", "1"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(cached(), IsEmpty());
  EXPECT_EQ(run.out, run_tierd(demo()).out);
}

TEST_F(Cli, ChangedSourceGetsAStoreOfItsOwn) {
  const std::string model = folder().path() + "/model";
  std::filesystem::copy(kDemo, model);
  const std::vector<std::string> arguments = {"-m", model, "-p", "The", "-n", "8", "--temp", "0"};
  const Ended first = run_tierd(arguments);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.err, Not(HasSubstr("has changed")));
  // One bit of the weights is flipped; name and size stay the same.
  flip_bit(model + "/model.safetensors", std::filesystem::file_size(model + "/model.safetensors") - 1, 2);
  const Ended second = run_tierd(arguments);
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr(model + " has changed"));
  EXPECT_THAT(cached(), SizeIs(2));
  const Ended third = run_tierd(arguments);
  EXPECT_EQ(third.out, second.out);
  EXPECT_THAT(third.err, Not(HasSubstr("has changed")));
  EXPECT_THAT(cached(), SizeIs(2));
}

}  // namespace
}  // namespace tierd
