// Draws five hundred configuration keys with drawn values. tierd must refuse each with status 2 and one line
// that names the key, or obey it, which shows in the plan of --check or in the report of a run in virtual
// time. `kUnseen` lists the keys whose effect cannot show, with the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/config/keys.h"
#include "tests/e2e/declared_parameters.h"
#include "tests/e2e/program.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr uint64_t kSeed = 37;
constexpr int kCases = kSanitized ? 12 : 100;  // for each world

// A key whose value may make no visible difference. A name that begins with "*." is matched in any table.
struct Unseen {
  std::string_view key;
  std::string_view why;
};
constexpr Unseen kUnseen[] = {
    {"pressure.stall_ms", "pressure.source is off"},
    {"pressure.window_ms", "pressure.source is off"},
    {"pressure.limit_percent", "pressure.source is off"},
    {"pressure.step", "pressure.source is off"},
    {"pressure.least", "pressure.source is off"},
    {"pressure.calm_ms", "pressure.source is off"},
    {"speculation.most", "no model guesses, and no text is looked up"},
    {"run.agent_deadline_ms", "no agent is lost"},
    {"plugins.deadline_ms", "no plugin takes so long"},
    {"run.bind", "virtual time is the same on any core"},
    {"*.cores", "virtual time is the same on any core"},
    {"*.thread", "an agent's figures are the same on any thread"},
    {"run.trace", "the file shows it"},
    {"run.timeline", "the file shows it"},
    {"scheduler.shuffle", "any order of messages gives the same figures"},
    {"compute.kernels", "auto is the best that there is"},
    {"compute.activations", "no weights are in blocks"},
    {"model.encoding", "the model is in this encoding"},
    {"model.head_encoding", "the model is in this encoding"},
    {"run.ubatch", "it is more than the context"},
    {"run.attention", "there is one unit"},
    {"run.dense", "it is the first unit"},
    {"*.fallback", "no plugin fails"},
    {"*.tensors", "the plugin reads none, and those of the model take no room"},
    {"*.compressed", "the store has nothing compressed"},
    {"*.link", "it names what the tier reads from in any case"},
    {"*.over", "it names what the tier lies over in any case"},
    {"*.kind", "it names the agent of the tier's name"},
    {"*.depth", "it is more than there are reads"},
    {"*.in_flight", "it is more than there are bytes"},
    {"*.max_read", "it is more than any read has"},
    {"*.gap", "no two extents lie so far apart, or so near"},
    {"*.staging", "it is more than any pass needs"},
    {"*.link_rate", "a described machine has links of its own"},
    {"*.link_latency_us", "a described machine has links of its own"},
    {"*.direct", "a described disk has no page cache"},
    {"*.blas_rows", "no GPU computes"},
    {"*.device", "no GPU computes; a described disk is no device"},
    {"*.backend", "virtual time has no backend"},
};

// Values of all types, within the bounds of some keys and outside those of others.
const std::vector<std::string>& values() {
  static const std::vector<std::string> all = {"0",
                                               "1",
                                               "2",
                                               "7",
                                               "-1",
                                               "65536",
                                               "4294967296",
                                               "9223372036854775807",
                                               "0.5",
                                               "1.5",
                                               "1e300",
                                               "nan",
                                               "-inf",
                                               "true",
                                               "false",
                                               "[1]",
                                               "[[1], {a = 1}]",
                                               "{a = 1}",
                                               "1979-05-27",
                                               "\"\"",
                                               "\"x\"",
                                               "\"ünï – ☃\"",
                                               "\"\\u0000\"",
                                               "\"1\"",
                                               "\"50%\"",
                                               "\"101%\"",
                                               "\"64 KiB\"",
                                               "\"none\"",
                                               "\"auto\"",
                                               "\"/nowhere/x\"",
                                               "\"lru\"",
                                               "\"dense\"",
                                               "\"flash\"",
                                               "\"dram\"",
                                               "\"dram.0\"",
                                               "\"rtx4090-1ndp\"",
                                               "\"q4_0\"",
                                               "\"q8_0,q4_0\"",
                                               "\"0\"",
                                               "\"-1\""};
  return all;
}

using Keys = std::map<std::string, std::string>;  // values in TOML

// A model with a configuration, and the plugins that its tables configure.
struct World {
  std::string name;
  Keys keys;
  std::vector<std::pair<std::string, std::string>> plugins;  // (table, KIND-NAME of its plugin)
};

std::string quoted(const std::string& text) {
  return "\"" + text + "\"";
}

Keys with_usual(Keys keys) {
  keys.insert({{"model.path", quoted(kDemo)},
               {"run.threads", "1"},
               {"run.clock", quoted("model")},
               {"run.machine", quoted("rtx3090-box")},
               {"run.context", "64"},
               {"tiers.dram.capacity", quoted("60%")}});
  return keys;
}

std::vector<World> worlds() {
  const std::string tensors = quoted(kDemo + "/predictor-r32.safetensors");
  return {
      {"Rows",
       with_usual({{"cache.name", quoted("lru")}}),
       {{"cache", "cache-lru"}, {"predictor", "predictor-dense"}, {"tiers.flash", "agent-flash"}}},
      {"Channels",
       with_usual({{"model.layout", quoted("channel-group")},
                   {"cache.name", quoted("context-lfu")},
                   {"predictor.name", quoted("top-k")}}),
       {{"cache", "cache-context-lfu"}, {"predictor", "predictor-top-k"}, {"tiers.flash", "agent-flash"}}},
      {"Editions",
       with_usual({{"model.layout", quoted("neuron")},
                   {"model.encoding", quoted("q8_0")},
                   {"model.editions", quoted("q4_0")},
                   {"cache.name", quoted("hot-set")},
                   {"quantizer.name", quoted("mixed")},
                   {"quantizer.ratios", quoted("50/50")},
                   {"predictor.name", quoted("low-rank")},
                   {"predictor.tensors", tensors}}),
       {{"cache", "cache-hot-set"},
        {"quantizer", "quantizer-mixed"},
        {"predictor", "predictor-low-rank"},
        {"tiers.flash", "agent-flash"}}},
      {"Gpu",
       with_usual({{"model.layout", quoted("neuron")},
                   {"heat.name", quoted("state-table")},
                   {"balancer.name", quoted("hot-cold")},
                   {"balancer.hot", quoted("gpu")},
                   {"tiers.dram.cache.name", quoted("home")},
                   {"tiers.gpu.over", quoted("dram")},
                   {"tiers.gpu.capacity", quoted("50%")},
                   {"tiers.gpu.backend", quoted("host")},
                   {"tiers.gpu.cache.name", quoted("atu")}}),
       {{"heat", "predictor-state-table"},
        {"balancer", "balancer-hot-cold"},
        {"tiers.gpu", "agent-gpu"},
        {"tiers.gpu.cache", "cache-atu"}}},
      {"Dimms",
       with_usual({{"model.layout", quoted("neuron")},
                   {"run.machine", quoted("rtx4090-2ndp")},
                   {"balancer.name", quoted("round-robin")},
                   {"predictor.name", quoted("random")},
                   {"tiers.dram.capacity", quoted("100%")},
                   {"tiers.ndp.count", "2"},
                   {"tiers.ndp.over", quoted("dram")},
                   {"tiers.ndp.capacity", quoted("100%")},
                   {"tiers.ndp.cache.name", quoted("residency-window")}}),
       {{"predictor", "predictor-random"},
        {"balancer", "balancer-round-robin"},
        {"tiers.ndp", "agent-ndp"},
        {"tiers.ndp.cache", "cache-residency-window"}}},
  };
}

// A key that can be drawn: its default in TOML and, if it accepts only certain words, these words.
struct Drawn {
  std::string path;
  std::string standard;
  std::vector<std::string> words;

  // Returns valid or nearly valid values of the default's type.
  std::vector<std::string> near() const {
    if (standard == "true" || standard == "false") return {standard == "true" ? "false" : "true"};
    if (standard.starts_with('"') && words.empty()) return {"\"40%\"", "\"1 MiB\"", "\"8\"", "\"dram\""};
    if (standard.starts_with('"')) {
      std::vector<std::string> all;
      for (const std::string& word : words) all.push_back("\"" + word + "\"");
      return all;
    }
    const bool whole = standard.find('.') == std::string::npos;
    return whole ? std::vector<std::string>{"1", "2", "3", "5", "40", "600"}
                 : std::vector<std::string>{"0.25", "0.75", "0.05", "2.5"};
  }
};

std::vector<std::string> words_in(std::string_view choices) {
  std::vector<std::string> words;
  while (!choices.empty()) {
    const size_t end = std::min(choices.find('|'), choices.size());
    words.emplace_back(choices.substr(0, end));
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
  return words;
}

template <class Key, class In>
Drawn drawn_of(const Key& key, In defaults, const std::string& path) {
  const json value = std::visit([&](auto place) { return json(place(defaults)); }, key.field);
  return {path, value.dump(), words_in(key.choices)};
}

std::vector<Drawn> drawn_keys(const World& world) {
  std::vector<Drawn> all;
  for (const Key& key : kKeys) all.push_back(drawn_of(key, Config(), std::string(key.path)));
  for (const char* tier : {"flash", "dram", "gpu", "ndp"}) {
    const std::string table = std::string(kTiers) + tier;
    const bool there = std::ranges::any_of(world.keys, [&](const auto& key) {
      return key.first.starts_with(table + ".") || std::string_view(tier) == "flash";
    });
    for (const TierKey& key : kTierKeys) {
      if (there) all.push_back(drawn_of(key, TierConfig(), table + "." + std::string(key.path)));
    }
  }
  for (const auto& [table, plugin] : world.plugins) {
    for (const DeclaredParameter& one : declared_parameters(plugin))
      all.push_back({table + "." + one.name, one.standard, words_in(one.choices)});
  }
  return all;
}

std::string last_of(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

std::string_view why_unseen(const std::string& path) {
  for (const Unseen& unseen : kUnseen) {
    const bool any_table = unseen.key.starts_with("*.");
    if (any_table ? path.ends_with(unseen.key.substr(1)) : path == unseen.key) return unseen.why;
  }
  return {};
}

// Removes the fields of a plan or report that differ from run to run.
json steady(json value) {
  static const std::set<std::string> kOfThisRun = {
      "ms",         "management_ms",  "first_token_ms",  "load_ms",           "predictor_ms",
      "limit",      "peak_rss_bytes", "disk_left_bytes", "system_read_bytes", "threads_woken",
      "shared_work"};
  if (value.is_object()) {
    for (auto field = value.begin(); field != value.end();) {
      if (kOfThisRun.contains(field.key())) {
        field = value.erase(field);
      } else {
        *field = steady(std::move(*field));
        ++field;
      }
    }
  } else if (value.is_array()) {
    for (json& one : value) one = steady(std::move(one));
  }
  return value;
}

// The result of running one configuration: --check first, then a generation.
struct Outcome {
  int status = 0;
  std::set<std::string> lines;  // lines of standard error
  json shown;
};

class ConfigKeys : public ProgramTest, public testing::WithParamInterface<World> {
 protected:
  Outcome run(const std::string& toml, const std::vector<std::string>& sets = {}) {
    const std::string file = folder().write("case.toml", toml);
    Outcome outcome;
    const std::vector<std::vector<std::string>> modes = {
        {"--check", "--json"}, {"-p", "First Citizen:", "-n", "4", "--json", "--temp", "1"}};
    for (std::vector<std::string> arguments : modes) {
      arguments.insert(arguments.end(), {"--config", file});
      for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
      Streams streams;
      streams.prepare = [&] { (void)!chdir(folder().path().c_str()); };  // trace files are written there
      const Ended ended = run_tierd(arguments, streams);
      outcome.status = ended.status;
      for (size_t at = 0; at < ended.err.size();) {
        const size_t end = std::min(ended.err.find('\n', at), ended.err.size());
        outcome.lines.insert(ended.err.substr(at, end - at));
        at = end + 1;
      }
      if (ended.status != 0) break;
      outcome.shown.push_back(steady(json::parse(ended.out, nullptr, false)));
    }
    return outcome;
  }
  static std::string toml_of(const Keys& keys) {
    std::string toml;
    for (const auto& [path, value] : keys) toml += path + " = " + value + "\n";
    return toml;
  }
  // Returns the lines that the unchanged world does not print.
  std::vector<std::string> lines_of(const Outcome& outcome) const {
    std::vector<std::string> lines;
    std::ranges::set_difference(outcome.lines, base_.lines, std::back_inserter(lines));
    return lines;
  }
  void expect_refused(const Outcome& outcome, const std::string& path) const {
    // On a loaded machine a plugin call may exceed the drawn deadline, which ends a run that has begun with
    // status 1.
    if (path == "plugins.deadline_ms" && outcome.status == 1) return;
    EXPECT_EQ(outcome.status, 2);
    const std::vector<std::string> lines = lines_of(outcome);
    ASSERT_EQ(lines.size(), 1u) << testing::PrintToString(lines);
    // A key whose last word is common to many plugins must be named with its path.
    const std::string last = last_of(path);
    const bool by_word = last != "name" && last != "fallback" && last != "tensors";
    const bool by_value = path == "model.path";
    const bool named = by_value || lines[0].find(by_word ? last : path) != std::string::npos ||
                       lines[0].find("parameter '" + last + "'") != std::string::npos;
    EXPECT_TRUE(named) << lines[0];
  }

  Outcome base_;
};

TEST_P(ConfigKeys, EachIsObeyedOrNamed) {
  alarm(280);  // a hundred programs twice, beside other tests
  const World& world = GetParam();
  const std::vector<Drawn> keys = drawn_keys(world);
  const uint64_t seed = kSeed * 100 + world.name.size();
  Random random(seed);
  const auto one_of = [&](const auto& list) { return list[random.below(list.size())]; };
  (void)run(toml_of(world.keys));  // makes the store
  base_ = run(toml_of(world.keys));
  ASSERT_EQ(base_.status, 0) << testing::PrintToString(base_.lines);
  ASSERT_EQ(base_.shown, run(toml_of(world.keys)).shown) << "not the same twice";
  int obeyed = 0, refused = 0;
  for (int i = 0; i < kCases; ++i) {
    const Drawn key = one_of(keys);
    const std::string value = random.below(2) == 0 ? one_of(key.near()) : one_of(values());
    const bool by_set = random.below(2) == 0;
    SCOPED_TRACE("seed " + std::to_string(seed) + ", case " + std::to_string(i) + ": " + key.path + " = " +
                 value);
    Keys changed = world.keys;
    const uint64_t lot = random.below(10);
    if (lot == 0) {  // a key that does not exist: misspelt, or in another table
      std::string path = key.path;
      if (random.below(2) == 0) path = one_of(keys).path;
      const std::string last = path == key.path ? "" : last_of(key.path);
      path = last.empty() ? path : path.substr(0, path.rfind('.') + 1) + last;
      if (std::ranges::find(keys, path, &Drawn::path) != keys.end())
        path.insert(path.size() - random.below(last_of(path).size()), 1, 'q');
      changed[path] = value;
      const Outcome outcome = run(toml_of(by_set ? world.keys : changed),
                                  by_set ? std::vector{path + "=" + value} : std::vector<std::string>());
      expect_refused(outcome, path);
      ++refused;
      continue;
    }
    if (lot == 1) {  // twice in the file
      const Outcome outcome = run(toml_of(changed) + key.path + " = " + value + "\n" + key.path + " = 1\n");
      EXPECT_EQ(outcome.status, 2);
      EXPECT_THAT(lines_of(outcome), testing::ElementsAre(testing::HasSubstr(last_of(key.path))));
      ++refused;
      continue;
    }
    changed[key.path] = value;
    std::vector<std::string> sets;
    if (by_set) sets.push_back(key.path + "=" + value);
    if (lot == 2) sets = {key.path + "=" + one_of(values()), key.path + "=" + value};  // the last one counts
    const Outcome outcome = run(toml_of(sets.empty() ? changed : world.keys), sets);
    if (lot == 2 && outcome.status != 0) continue;  // either value may be at fault
    if (outcome.status != 0) {
      expect_refused(outcome, key.path);
      ++refused;
      continue;
    }
    ++obeyed;
    const auto given = world.keys.find(key.path);
    const std::string before = given == world.keys.end() ? key.standard : given->second;
    const bool told = std::ranges::any_of(lines_of(outcome), [&](const std::string& line) {
      return line.find(last_of(key.path)) != std::string::npos;
    });
    EXPECT_TRUE(outcome.shown != base_.shown || value == before || value == quoted(before) ||
                quoted(value) == before || told || !why_unseen(key.path).empty())
        << "accepted, and it makes no difference";
  }
  EXPECT_GT(obeyed, kCases / 8);
  EXPECT_GT(refused, kCases / 4);
}

INSTANTIATE_TEST_SUITE_P(Drawn, ConfigKeys, testing::ValuesIn(worlds()),
                         [](const testing::TestParamInfo<World>& world) { return world.param.name; });

// On the wall clock, run.machine and run.energy are read as well, for the power of devices.
TEST_F(ProgramTest, KeysThatNothingReadsAreNamed) {
  const auto refused = [](const std::string& set) {
    const Ended ended = run_tierd({"-m", kDemo, "--check", "--set", set});
    EXPECT_EQ(ended.status, 2) << set;
    return ended.err;
  };
  using testing::HasSubstr;
  using testing::StartsWith;
  EXPECT_THAT(refused("run.machine=nowhere"), StartsWith("run.machine: nowhere: no such machine"));
  EXPECT_THAT(refused("run.energy=nowhere"), StartsWith("run.energy: nowhere: no such machine"));
  EXPECT_THAT(refused("run.drawn=states"), HasSubstr("the key 'run.drawn' has moved: drawn activity is set"));
  EXPECT_THAT(refused("run.activity=m2cache"), HasSubstr("the key 'run.activity' has moved: drawn activity"));
  EXPECT_THAT(refused("plan.sparsity=0.5"), HasSubstr("the key 'plan.sparsity' has moved: tier plan"));
  EXPECT_THAT(refused("heat.tensors=x"), StartsWith("heat.tensors: is set for a predictor that keeps heat"));
  EXPECT_THAT(refused("heat.up=4"), StartsWith("heat.up: is set for a predictor"));
  EXPECT_THAT(refused("tiers.dram.cache.window=4"),
              StartsWith("tiers.dram.cache.window: is set for a cache"));
  EXPECT_THAT(refused("plugins.path=/nowhere"), StartsWith("plugins.path: '/nowhere' is not a folder"));
  EXPECT_THAT(refused("pressure.step=much"), StartsWith("pressure.step: "));
  EXPECT_THAT(refused("pressure.calm_ms=0"), StartsWith("pressure.calm_ms: 0, expected 1 to"));
  EXPECT_THAT(refused("heat.fallback=x"), StartsWith("heat.fallback: is set for a predictor"));
  EXPECT_THAT(refused("cache.fallback=x"), StartsWith("cache.fallback: there is no cache 'x'"));
  EXPECT_THAT(refused("predictor.tensors=x"), StartsWith("predictor.tensors: x: cannot open"));
  EXPECT_THAT(refused("model.tokenizer=x"), StartsWith("model.tokenizer: x: there is no such file"));
}

}  // namespace
}  // namespace tierd
