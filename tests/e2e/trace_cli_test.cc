// Runs tierd --trace and tier-trace as a user does.
#include <gmock/gmock.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/random.h"
#include "tests/e2e/program.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

class TraceCli : public ProgramTest {
 protected:
  static std::vector<std::string> run_of(const std::string& trace, std::vector<std::string> more = {},
                                         const char* tokens = "12") {
    std::vector<std::string> arguments = {"--config", config_file("hybrid"),
                                          "-m",       kDemo,
                                          "-p",       "First Citizen:",
                                          "-n",       tokens,
                                          "--temp",   "0",
                                          "-t",       "1",
                                          "--fit",    "-q",
                                          "--set",    "cache.name=lru",
                                          "--trace",  trace};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static Ended tier_trace(std::vector<std::string> arguments) {
    StartedProgram program(TIERD_BIN_TRACE, std::move(arguments));
    return program.wait();
  }
  static Ended tier_activity(std::vector<std::string> arguments) {
    return run_program(TIERD_BIN_ACTIVITY, std::move(arguments));
  }
  std::string recorded() const {
    const std::string trace = folder().path() + "/run.trace";
    const Ended run = run_tierd(run_of(trace));
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.err, IsEmpty());
    return trace;
  }
};

TEST_F(TraceCli, ARunIsSummarisedAndReplayed) {
  const std::string trace = recorded();
  const Ended summary = tier_trace({"summary", trace});
  EXPECT_EQ(summary.status, 0) << summary.err;
  EXPECT_THAT(summary.out, HasSubstr("1 prefill and 11 decode steps"));
  EXPECT_THAT(summary.out, HasSubstr("cache       lru"));
  EXPECT_THAT(summary.out, HasSubstr("flash read"));
  const json object = json::parse(tier_trace({"summary", trace, "--json"}).out);
  EXPECT_EQ(object.value("decode_steps", 0), 11);
  EXPECT_TRUE(object.value("whole", false));

  const Ended replayed = tier_trace({"replay", trace});
  EXPECT_EQ(replayed.status, 0) << replayed.err;
  EXPECT_THAT(replayed.out, HasSubstr("12 steps"));
  EXPECT_THAT(replayed.out, HasSubstr("decided the same, byte for byte"));
  EXPECT_TRUE(json::parse(tier_trace({"replay", trace, "--json"}).out).value("same", false));
}

// Everything is resident on a GPU that the host emulates, so several sites are computed in one joint run.
TEST_F(TraceCli, JointRunsAreReplayed) {
  const std::string trace = folder().path() + "/joint.trace";
  const Ended run = run_tierd({"--config", config_file("endor"),
                               "-m",       kDemo,
                               "-p",       "First Citizen:",
                               "-n",       "6",
                               "--temp",   "0",
                               "-t",       "1",
                               "--fit",    "-q",
                               "--set",    "tiers.gpu.backend=host",
                               "--set",    "model.compression=none",  // the model is not pruned
                               "--set",    "tiers.gpu.capacity=1 GiB",
                               "--trace",  trace});
  ASSERT_EQ(run.status, 0) << run.err;
  const Ended printed = tier_trace({"print", trace, "--steps", "3-3"});
  EXPECT_THAT(printed.out, HasSubstr("run layers.0.qkv, 8 sites, the last one layers.1.down"));
  const Ended replayed = tier_trace({"replay", trace});
  EXPECT_EQ(replayed.status, 0) << replayed.err;
  EXPECT_THAT(replayed.out, HasSubstr("decided the same, byte for byte"));
  const Ended asked = tier_trace({"what-if", trace, "cache.name=lru"});
  EXPECT_EQ(asked.status, 0) << asked.err;
  EXPECT_THAT(tier_trace({"export", trace, "-o", "-"}).out, HasSubstr("layers.0.qkv and 7 more"));
}

// The passes of the trace show which experts were chosen.
TEST_F(TraceCli, AMixtureInChannelsIsReplayed) {
  const std::string trace = folder().path() + "/mixture.trace";
  const Ended run = run_tierd({"--config", config_file("activeflow"), "-m",
                               TIERD_SOURCE_DIR "/tests/golden/models/gguf-mixtral-f32/model.gguf", "-p", "",
                               "-n", "8", "-t", "1", "--fit", "-q", "--set", "tiers.dram.capacity=30%",
                               "--set", "predictor.ahead=none", "--trace", trace});
  ASSERT_EQ(run.status, 0) << run.err;
  const Ended replayed = tier_trace({"replay", trace});
  EXPECT_EQ(replayed.status, 0) << replayed.err;
  EXPECT_THAT(replayed.out, HasSubstr("decided the same, byte for byte"));
  const Ended asked = tier_trace({"what-if", trace, "cache.name=lru", "cache.name=lfu"});
  EXPECT_EQ(asked.status, 0) << asked.err;
}

TEST_F(TraceCli, EveryEventIsPrinted) {
  const std::string trace = recorded();
  const Ended all = tier_trace({"print", trace});
  EXPECT_EQ(all.status, 0) << all.err;
  const auto lines = std::count(all.out.begin(), all.out.end(), '\n');
  EXPECT_EQ(lines, json::parse(tier_trace({"summary", trace, "--json"}).out).value("events", 0));
  const Ended some = tier_trace({"print", trace, "--steps", "3-4"});
  EXPECT_THAT(some.out, HasSubstr("pass layers.0.qkv of step 3, 1 rows"));
  EXPECT_THAT(some.out, HasSubstr("step 4 ends"));
  EXPECT_THAT(some.out, testing::Not(HasSubstr("of step 5")));
}

// Perfetto needs numbers where the format has numbers, and slices of one row that do not overlap.
TEST_F(TraceCli, TheTimelineIsChromeTraceEvents) {
  const std::string trace = recorded();
  const std::string file = folder().path() + "/run.json";
  ASSERT_EQ(tier_trace({"export", trace, "-o", file}).status, 0);
  const std::string text = file_text(file);
  EXPECT_EQ(tier_trace({"export", trace, "-o", "-"}).out, text);
  const json timeline = json::parse(text);
  std::map<int, double> ends;
  std::map<std::string, int> phases;
  uint64_t steps = 0;
  for (const json& event : timeline["traceEvents"]) {
    const std::string phase = event.at("ph");
    ++phases[phase];
    if (phase != "X") continue;
    const int row = event.at("tid");
    steps += row == 1 ? 1 : 0;
    const double begin = event.at("ts"), length = event.at("dur");
    EXPECT_GE(begin, 0);
    EXPECT_GE(length, 0);
    EXPECT_GE(begin + 0.002, ends[row]) << event;
    ends[row] = begin + length;
  }
  EXPECT_EQ(steps, 12u);
  EXPECT_GT(phases["M"], 8);
  EXPECT_GT(phases["C"], 100);
  const json two = json::parse(tier_trace({"export", trace, "-o", "-", "--steps", "5-6"}).out);
  EXPECT_LT(two["traceEvents"].size(), timeline["traceEvents"].size() / 3);
}

TEST_F(TraceCli, OtherPoliciesAreCompared) {
  const std::string trace = recorded();
  const Ended table = tier_trace(
      {"what-if", trace, "cache.name=pinned", "cache.name=none", "arena=100%", "cache.name=lfu,arena=1"});
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_EQ(std::count(table.out.begin(), table.out.end(), '\n'), 6);
  const json rows = json::parse(
      tier_trace({"what-if", trace, "cache.name=pinned", "cache.name=none", "arena=100%", "--json"})
          .out)["rows"];
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0]["name"], "as recorded");
  EXPECT_EQ(rows[0]["decode_steps"], 11);
  EXPECT_LT(rows[1]["read_bytes"], rows[2]["read_bytes"]);
  EXPECT_EQ(rows[2]["hits"], 0);
  EXPECT_GT(rows[3]["hit_rate"], 0.9);  // all but the first load of each neuron
}

TEST_F(TraceCli, WhatMakesNoSenseIsSaidInOneLine) {
  const std::string trace = recorded();
  struct Case {
    std::vector<std::string> arguments;
    const char* line;
  };
  const Case cases[] = {
      {{}, "A subcommand is required"},
      {{"replay"}, "FILE is required"},
      {{"replay", trace + ".no"}, "run.trace.no: cannot open"},
      {{"summary", kDemo}, "is a folder"},
      {{"summary", std::string(TIERD_SOURCE_DIR) + "/README.md"},
       "is no trace; tierd --trace FILE writes one"},
      {{"print", trace, "--steps", "4-3"}, "--steps: '4-3' is no step (3) and no range (3-7)"},
      {{"print", trace, "--steps", "x"}, "--steps: 'x'"},
      {{"what-if", trace, "run.threads=4"},
       "run.threads=4: is not a key that a replay can change; expected arena, or a key of predictor, "
       "quantizer, cache or balancer, such as cache.name=lfu"},
      {{"what-if", trace, "cache.name=lrx"}, "did you mean 'lru'?"},
      {{"what-if", trace, "cache.nmae=lru"}, "nmae"},
      {{"what-if", trace, "arena=lots"}, "arena"},
  };
  for (const Case& c : cases) {
    const Ended ended = tier_trace(c.arguments);
    SCOPED_TRACE(ended.err);
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_THAT(ended.err, HasSubstr(c.line));
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1);
  }
  EXPECT_EQ(tier_trace({"export", trace, "-o", "/no/such/place"}).status, 1);
  const Ended nowhere = run_tierd(run_of("/no/such/place"));
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("/no/such/place: cannot be written: No such file or directory"));
  const Ended full = run_tierd(run_of("/dev/full"));
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.err, HasSubstr("/dev/full: the trace could not be written: No space left on device"));
}

// The trace of an interrupted or killed run replays up to its end.
TEST_F(TraceCli, ATraceOfARunThatWasBrokenOffReplays) {
  const std::string trace = recorded();
  Random random(7);
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    StartedProgram program(TIERD_BIN_TIERD, run_of(trace, {"-c", "256", "--ignore-eos"}, "250"));
    std::this_thread::sleep_for(std::chrono::milliseconds(50 + random.below(500)));
    program.kill(round % 2 == 0 ? SIGINT : SIGKILL);
    (void)program.wait();
    const Ended replayed = tier_trace({"replay", trace});
    if (replayed.status == 2) {  // the header is missing or incomplete
      EXPECT_THAT(replayed.err, AnyOf(HasSubstr("is no trace"), HasSubstr("ends within its header")));
      continue;
    }
    EXPECT_EQ(replayed.status, 0) << replayed.out << replayed.err;
    EXPECT_THAT(replayed.out, HasSubstr("decided the same"));
  }
}

// Checks relations that hold for any text, and the finding of LLM in a flash on bundling neurons that fire
// together. The text is sampled from the model itself.
TEST_F(TraceCli, ActivityOfTheEmbeddedModel) {
  const auto activity = [&](const char* seed) {
    const std::string trace = folder().path() + "/" + seed + ".trace";
    std::vector<std::string> arguments = {"--config", config_file("llm-in-a-flash"), "-m", kDemo, "-p",
                                          "First"};
    for (const char* const more : {"-n", "160", "-c", "256", "--temp", "1", "-s", seed, "-t", "1", "-q"})
      arguments.emplace_back(more);
    for (const char* const key :
         {"predictor.name=dense", "tiers.dram.capacity=all", "scheduler.measure_every=1"})
      arguments.insert(arguments.end(), {"--set", key});
    arguments.insert(arguments.end(), {"--trace", trace});
    const Ended run = run_tierd(arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    return trace;
  };
  const std::string other = activity("2"), trace = activity("1");
  const Ended told = tier_activity({"show", "--measured", "--unrelated", other, trace, "--json"});
  ASSERT_EQ(told.status, 0) << told.err;
  const json all = json::parse(told.out);
  for (const json& site : all["sites"]) {
    SCOPED_TRACE(site["site"].get<std::string>());
    const auto fresh = site["new"].get<std::vector<double>>();
    const auto held = site["held"].get<std::vector<double>>();
    double union_of = site["active"].get<double>();
    EXPECT_NEAR(held[0], union_of + fresh[0], 2e-3);  // except at the ends of the text
    for (size_t k = 1; k < fresh.size(); ++k) {
      EXPECT_LE(fresh[k], fresh[k - 1]);
      EXPECT_NEAR(held[k], held[k - 1] + fresh[k], 2e-3);
    }
  }
  const json& mean = all["mean"];
  EXPECT_GT(mean["overlap"].get<double>(), mean["unrelated_overlap"].get<double>());
  EXPECT_GT(mean["closest_friend_cost"].get<double>(), 1.3);
  EXPECT_LT(4 * mean["closest_friends"].get<double>(), mean["with_a_friend"].get<double>());
  // Most bundled copies would be of neurons that are resident already.
  EXPECT_GT(mean["friends_here"].get<double>(), 0.5);
  EXPECT_GT(mean["friends_wanted"].get<double>(), 0);
  EXPECT_LT(mean["friends_used"].get<double>(), 0.2);
  const Ended text = tier_activity({"show", "--measured", trace});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("bundled with its closest friend"));
  EXPECT_THAT(text.out, HasSubstr("wanted by the same token"));
}

TEST_F(TraceCli, FormerCommandsNameTheOnesThatReplaceThem) {
  const auto refused = [](std::vector<std::string> arguments) {
    const Ended ended = tier_trace(std::move(arguments));
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(ended.out, IsEmpty());
    return ended.err;
  };
  EXPECT_EQ(refused({"activity", "my run.trace", "--json"}),
            "tier-trace: activity is another command now: tier activity show 'my run.trace' --json\n");
  EXPECT_THAT(refused({"truth", "a", "-o", "b"}), HasSubstr(": tier activity truth a -o b\n"));
  EXPECT_THAT(refused({"routing", "a.csv", "cache.name=lru,cache.k=1"}),
              HasSubstr(": tier activity routing a.csv cache.name=lru,cache.k=1\n"));
  EXPECT_THAT(refused({"draw", "--help"}), HasSubstr(": tier activity draw --help\n"));
}

}  // namespace
}  // namespace tierd
