// What a run is: TOML files over defaults, --set over TOML. Every key is declared once, in config.cc; an
// unknown one is an error that names file and line and suggests the nearest.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/setting.h"

namespace tierd {

// [predictor], [quantizer], [cache], [balancer]: a plugin, and what it is told. Which parameters there are
// only the plugin knows: they are checked when it is loaded.
struct StrategyConfig {
  std::string name;
  std::string fallback = {};  // the plugin that takes its place when it fails; empty: none
  std::string tensors = {};   // a safetensors file; empty: none
  std::vector<Setting> settings = {};
};

// [tiers.NAME]: agents of one kind that serve a tier, what its memories are like, and what the agents are
// told. What else stands in the table are parameters that only the agent knows.
struct TierConfig {
  std::string name;
  std::string kind = {};          // which agent; empty: the one that has the tier's name
  uint32_t count = 1;             // agents, each with a memory of its own; 0: there is no such tier
  std::string capacity = "auto";  // of all its memories together
  std::string staging = "64 MiB";
  // The tier whose caches are asked for what this one misses; empty: no tier is asked, the store is read.
  std::string over = {};
  // The tiers that it fetches from, the nearest first, divided by ','; empty: `over`, or the store.
  std::string link = {};
  bool compute = true;  // false: it only keeps what tiers over it fetch
  // What becomes of neurons that the store has compressed: "kept" as they are, "expanded" as they arrive;
  // "auto": kept, unless a tier that they come from has expanded them.
  std::string compressed = "auto";
  // "none", or the encodings in which its memories hold neurons besides, "q8_0,q4_0": they are encoded anew
  // on their way from the tier below, which has what is stored.
  std::string recode = "none";
  std::string thread = "kernel";
  // The cores that its threads are bound to, "0-3,8"; empty: as run.threads and run.bind have it.
  std::string cores = {};
  StrategyConfig cache = {};  // [tiers.NAME.cache], of its memories; without a name: [cache]
  std::vector<Setting> settings = {};

  const std::string& agent() const { return kind.empty() ? name : kind; }
  std::string table() const { return "tiers." + name; }
};

// [pressure]: the lowest tier gives memory back while it is short around the process.
struct PressureConfig {
  std::string source = "off";
  uint32_t stall_ms = 300;
  uint32_t window_ms = 2000;
  uint32_t limit_percent = 90;
  std::string step = "10%";
  std::string least = "25%";
  uint32_t calm_ms = 10000;
};

// [plan]: what tierd --plan takes for granted instead of finding it out.
struct PlanConfig {
  double sparsity = 0;    // 0: what the budget asks for
  double hits = 0;        // 0: the share of the channels in memory, as without any locality
  double similarity = 0;  // 0: SITE.ahead of the predictor's tables, else the paper's 0.8
  double least_gain = 0.05;
};

// [speculation]: who guesses tokens for the model to check.
struct SpeculationConfig {
  std::string model;    // a small model of the same vocabulary; empty: none
  bool lookup = false;  // from what the text has said before
  uint32_t most = 4;    // tokens at once (LLM in a flash, 5.2: lambda = 4)

  bool guesses() const { return lookup || !model.empty(); }
};

struct Config {
  // [model]
  std::string model;
  std::string tokenizer;
  uint32_t zeros = 0;          // of a shape without weights, per cent
  std::string layout = "row";  // of the store that a model which is none is converted into
  uint32_t layer_group = 1;
  std::string experts = "whole";  // of a mixture in layout channel-group
  std::string order;              // a file of rates, by which channels lie
  std::string encoding = "source";
  std::string head_encoding = "same";
  std::string bundling = "row-column";
  std::string compression = "none";
  std::string editions = "none";
  std::vector<Setting> codec;  // [codec]: what the codec that model.compression names is told
  // [run]
  uint32_t threads = 0;  // compute workers; 0: all cores
  uint32_t context = 0;  // 0: the model's, at most 4096
  uint32_t sequences = 1;
  uint32_t ubatch = 512;
  std::string kv = "f16";
  uint64_t seed = 0;
  bool bind = true;
  std::string clock = "wall";
  std::string execute = "real";
  std::string machine;   // by whose description virtual time goes; empty: none
  std::string activity;  // a profile by which it is drawn what is active; empty: predictors say it
  std::string drawn =
      "sets";             // what is drawn: which neurons are active; or "states" that a predictor looks at
  std::string energy;     // by whose description power is reckoned; empty: the machine's, else the default
  std::string dense;      // the unit that runs the dense segments; empty: the first one
  std::string attention;  // units that attend, each with heads of its own; empty: the dense one
  uint32_t agent_deadline_ms = 60'000;  // an agent that completes nothing for so long is lost; 0: never
  std::string trace;                    // records the run in this file; empty: not
  std::string timeline;                 // writes when what happened to this file; empty: not
  // [compute]
  std::string activations = "int8";
  std::string kernels = "auto";
  std::vector<TierConfig> tiers = {{"flash"}, {"dram"}};
  PressureConfig pressure;
  PlanConfig plan;
  SpeculationConfig speculation;
  // [plugins]
  std::string plugin_path;  // folders, divided by ':'
  uint32_t plugin_deadline_ms = 1000;
  // the strategies
  StrategyConfig predictor = {"dense"};
  StrategyConfig quantizer = {"plain"};
  StrategyConfig cache = {"pinned"};
  StrategyConfig balancer = {"single"};
  StrategyConfig heat = {};  // a predictor that keeps the neurons' heat; empty: [predictor], if it does
  // [scheduler]
  bool prefetch = true;
  uint32_t measure_every = 0;  // steps; 0: never
  std::string shuffle;         // a seed: tests

  // The keys that the file or --set has given, but those of tiers and plugins, and where: "hermes.toml:40".
  std::map<std::string, std::string, std::less<>> given;

  // The tier of that name, which is made if there is none.
  TierConfig& tier(std::string_view name);
  const TierConfig* find_tier(std::string_view name) const;
};

// `file` may be empty (defaults). `overrides`: "key=value", the value in TOML or a bare word. All errors are
// collected, one a line.
Result<Config> load_config(const std::string& file, const std::vector<std::string>& overrides);

// The keys whose values differ, and those of plugins below their tables, "cache.k".
std::vector<std::string> changed_keys(const Config& before, const Config& after);

// The keys with their types, defaults and one line of help, for --help and the manual.
std::string config_manual();

}  // namespace tierd
