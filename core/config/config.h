// The configuration of a run: defaults, overridden by TOML files, overridden by --set. Every key is declared
// once, in keys.h; an unknown key is an error that names file and line and suggests the nearest known one.
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

// [predictor], [quantizer], [cache], [balancer], [heat]: a plugin and its parameters. Only the plugin knows
// its parameters, so they are checked when it is loaded.
struct StrategyConfig {
  std::string name;
  std::string fallback = {};  // the plugin that replaces it after a failure; empty: none
  std::string tensors = {};   // a safetensors file; empty: none
  std::vector<Setting> settings = {};
};

// [tiers.NAME]: the agents of one kind that serve a tier, their memories, and their parameters. Other keys of
// the table are parameters that only the agent knows.
struct TierConfig {
  std::string name;
  std::string kind = {};          // the agent's name; empty: the tier's name
  uint32_t count = 1;             // agents, each with a memory of its own; 0: no such tier
  std::string capacity = "auto";  // of all its memories together
  std::string staging = "64 MiB";
  // The tier below, whose caches see this tier's misses; empty: none, misses are read from the store.
  std::string over = {};
  // The tiers that it fetches from, the nearest first, separated by ','; empty: `over`, or the store.
  std::string link = {};
  bool compute = true;  // false: it only holds neurons that tiers over it fetch
  // The form of neurons that the store has compressed: "kept" as they are, "expanded" on arrival; "auto":
  // kept, unless a tier that it fetches from has expanded them.
  std::string compressed = "auto";
  // "none", or further encodings in which its memories hold neurons, "q8_0,q4_0": neurons are encoded on
  // their way from the tier below, which has the stored edition.
  std::string recode = "none";
  std::string thread = "kernel";
  // The cores to which its threads are bound, "0-3,8"; empty: as run.threads and run.bind say.
  std::string cores = {};
  StrategyConfig cache = {};  // [tiers.NAME.cache], for its memories; without a name: [cache]
  std::vector<Setting> settings = {};

  const std::string& agent() const { return kind.empty() ? name : kind; }
  std::string table() const { return "tiers." + name; }
};

// [pressure]: the lowest tier gives memory back while memory is short around the process.
struct PressureConfig {
  std::string source = "off";
  uint32_t stall_ms = 300;
  uint32_t window_ms = 2000;
  uint32_t limit_percent = 90;
  std::string step = "10%";
  std::string least = "25%";
  uint32_t calm_ms = 10000;
};

// [speculation]: the source of guesses that the model checks.
struct SpeculationConfig {
  std::string model;    // a small model of the same vocabulary; empty: none
  bool lookup = false;  // from earlier parts of the text
  uint32_t most = 4;    // most tokens at once (LLM in a flash, 5.2: lambda = 4)

  bool guesses() const { return lookup || !model.empty(); }
};

struct Config {
  // [model]
  std::string model;
  std::string tokenizer;
  uint32_t zeros = 0;          // assumed zeros of a shape without weights, per cent
  std::string layout = "row";  // layout of the store into which a model is converted
  uint32_t layer_group = 1;
  std::string experts = "whole";  // cut of a mixture's experts in layout channel-group
  std::string order;              // a file of rates that determines the order of channels
  std::string encoding = "source";
  std::string head_encoding = "same";
  std::string bundling = "row-column";
  std::string compression = "none";
  std::string editions = "none";
  std::vector<Setting> codec;  // [codec]: parameters of the codec that model.compression names
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
  std::string machine;    // description that determines virtual time; empty: none
  std::string energy;     // description with the power of devices; empty: the machine's, else the default
  std::string dense;      // the unit that runs the dense segments; empty: the first one
  std::string attention;  // units that attend, each for some heads; empty: the dense one
  uint32_t agent_deadline_ms = 60'000;  // without a completion for this time an agent is lost; 0: never
  std::string trace;                    // file in which the run is recorded; empty: none
  std::string timeline;                 // file of timed events; empty: none
  // [compute]
  std::string activations = "int8";
  std::string kernels = "auto";
  std::vector<TierConfig> tiers = {{"flash"}, {"dram"}};
  PressureConfig pressure;
  SpeculationConfig speculation;
  // [plugins]
  std::string plugin_path;  // folders, separated by ':'
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

  // The keys that were set, except those of tiers and plugins, with their origin: "hermes.toml:40".
  std::map<std::string, std::string, std::less<>> given;

  // Returns the tier of that name; adds it if there is none.
  TierConfig& tier(std::string_view name);
  const TierConfig* find_tier(std::string_view name) const;
};

// Loads a configuration. `file` may be empty (defaults). `overrides`: "key=value", the value in TOML or a
// bare word. Collects all errors, one a line.
Result<Config> load_config(const std::string& file, const std::vector<std::string>& overrides);

// Returns the keys whose values differ; those of plugins are named below their tables, "cache.k".
std::vector<std::string> changed_keys(const Config& before, const Config& after);

// Returns the keys with their types, defaults and one line of help, for --help and the manual.
std::string config_manual();

}  // namespace tierd
