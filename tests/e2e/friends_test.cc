// Bundling by co-activation, from the trace that counts friends to the run that meets them (LLM in a flash,
// section 3.2).
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class FriendsCli : public ProgramTest {
 protected:
  std::string path(const std::string& name) const { return folder().path() + "/" + name; }
  // What truly fired while the embedded model wrote some text.
  std::string traced(const std::string& layout, const std::string& predictor = "dense") const {
    const std::string trace = path(layout + ".trace");
    const Ended run = run_tierd({"-m",
                                 kDemo,
                                 "-p",
                                 "First",
                                 "-n",
                                 "96",
                                 "--temp",
                                 "1",
                                 "-s",
                                 "1",
                                 "-t",
                                 "1",
                                 "-q",
                                 "--set",
                                 "model.layout=" + layout,
                                 "--set",
                                 "predictor.name=" + predictor,
                                 "--set",
                                 "scheduler.measure_every=1",
                                 "--trace",
                                 trace});
    EXPECT_EQ(run.status, 0) << run.err;
    return trace;
  }
  std::string counted() const {
    const std::string friends = path("friends.json");
    const Ended told =
        run_program(TIERD_BIN_TRACE, {"activity", traced("neuron"), "--measured", "--friends", friends});
    EXPECT_EQ(told.status, 0) << told.err;
    EXPECT_THAT(told.out, HasSubstr("bundled with its closest friend"));
    return friends;
  }
  std::string converted() const {
    const std::string store = path("store");
    const Ended made = run_program(TIERD_BIN_CONVERT, {kDemo, store, "--layout", "neuron", "--bundling",
                                                       "closest-friend", "--friends", counted(), "--verify"});
    EXPECT_EQ(made.status, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr("a copy of its closest friend's"));
    return store;
  }
  static json generated(const std::string& model, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "-m",    model,
        "-p",    "First Citizen:",
        "-n",    "40",
        "-t",    "1",
        "-q",    "--temp",
        "0",     "--json",
        "--set", "predictor.tensors=" + kDemo + "/predictor-r64.safetensors"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended run = run_tierd(arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    return json::parse(run.out, nullptr, false);
  }
};

TEST_F(FriendsCli, ComeAlongAndChangeNothing) {
  const std::string store = converted(), trace = path("run.trace");
  const json resident =
      generated(kDemo, {"--config", config_file("llm-in-a-flash"), "--set", "tiers.dram.capacity=all"});
  EXPECT_FALSE(resident["report"].contains("friends"));
  // Above the 50 % of the file: of a model as small as this one, half goes into the KV cache and the like.
  const std::vector<std::string> window = {"--config", config_file("ablation/flash-friend"), "--set",
                                           "tiers.dram.capacity=100%"};
  const std::vector<std::string> lru = {"--set", "predictor.name=low-rank", "--set", "cache.name=lru",
                                        "--set", "tiers.dram.capacity=100%"};
  for (std::vector<std::string> policy : {window, lru}) {
    SCOPED_TRACE(policy[1]);
    policy.insert(policy.end(), {"--fit", "--trace", trace});
    const json run = generated(store, policy);
    EXPECT_EQ(run["text"], resident["text"]);
    const json& friends = run["report"]["friends"];
    const auto count = [&](const char* key) { return friends[key].get<uint64_t>(); };
    EXPECT_GT(count("read"), 0u);
    EXPECT_GE(count("bytes"), count("read") * 512);
    EXPECT_LT(count("used"), count("read"));
    EXPECT_GT(count("together"), 0u);
    EXPECT_GT(count("here"), 0u);
    const Ended replayed = run_program(TIERD_BIN_TRACE, {"replay", trace});
    EXPECT_EQ(replayed.status, 0) << replayed.out << replayed.err;
    EXPECT_THAT(replayed.out, HasSubstr("decided the same"));
    const json again = json::parse(run_program(TIERD_BIN_TRACE, {"replay", trace, "--json"}).out);
    EXPECT_EQ(again["counters"]["friends"], friends);
    const Ended other = run_program(TIERD_BIN_TRACE, {"what-if", trace, "cache.name=lfu"});
    EXPECT_EQ(other.status, 0) << other.out << other.err;
    EXPECT_THAT(other.out, HasSubstr("friends/step"));
    EXPECT_EQ(run_program(TIERD_BIN_TRACE, {"print", trace}).status, 0);
  }
}

TEST_F(FriendsCli, WhatDoesNotFitIsRefused) {
  const std::string friends = counted();
  const auto refused = [&](const Ended& ended, const std::string& what) {
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(ended.err, HasSubstr(what));
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  };
  const auto convert = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {kDemo, path("store"), "-q"});
    return run_program(TIERD_BIN_CONVERT, std::move(more));
  };
  refused(convert({"--layout", "neuron", "--bundling", "closest-friend"}), "needs a table of friends");
  refused(convert({"--layout", "neuron", "--friends", friends}), "they go with bundling closest-friend");
  refused(convert({"--bundling", "closest-friend", "--friends", friends}), "it goes with layout neuron");
  refused(convert({"--layout", "neuron", "--bundling", "closest-friend", "--friends", path("none")}), "none");
  json table = json::parse(file_text(friends));
  table["layers.2.ffn"][7] = 7;
  const std::string spoilt = folder().write("spoilt.json", table.dump());
  refused(convert({"--layout", "neuron", "--bundling", "closest-friend", "--friends", spoilt}),
          "layers.2.ffn: the table of friends names neuron 7 as its own friend");
  refused(run_tierd({"-m", kDemo, "-p", "x", "-q", "--set", "model.layout=neuron", "--set",
                     "model.bundling=closest-friend", "--set", "model.friends=" + spoilt}),
          "names neuron 7 as its own friend");
  // A run of rows has no neurons that could be friends.
  const Ended rows =
      run_program(TIERD_BIN_TRACE, {"activity", traced("row", "random"), "--friends", path("rows.json")});
  refused(rows, "--friends: no site of this run is cut into neurons");
}

}  // namespace
}  // namespace tierd
