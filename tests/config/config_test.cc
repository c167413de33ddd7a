#include "core/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>

namespace tierd {
namespace {

using testing::HasSubstr;

class ConfigTest : public testing::Test {
 protected:
  std::string file(const std::string& text) {
    const std::string path = testing::TempDir() + "tierd-config-" + std::to_string(getpid()) + ".toml";
    std::ofstream(path) << text;
    path_ = path;
    return path;
  }
  void TearDown() override {
    if (!path_.empty()) unlink(path_.c_str());
  }
  // Returns the error of a file without the file's name.
  std::string error_of(const std::string& text) {
    const auto config = load_config(file(text), {});
    if (config.ok()) return "accepted";
    EXPECT_EQ(config.code(), Code::invalid_argument);
    std::string line = config.error().line();
    for (size_t at = line.find(path_); at != std::string::npos; at = line.find(path_)) {
      line.replace(at, path_.size(), "FILE");
    }
    return line;
  }
  std::string path_;
};

std::string set_error(const std::string& assignment) {
  const auto config = load_config("", {assignment});
  return config.ok() ? "accepted" : config.error().line();
}

struct KeyCase {
  const char* key;
  const char* value;  // as TOML
  std::function<bool(const Config&)> holds;
};

const std::vector<KeyCase>& keys() {
  static const std::vector<KeyCase> all = {
      {"model.path", "\"a b.gguf\"", [](const Config& c) { return c.model == "a b.gguf"; }},
      {"model.zeros", "50", [](const Config& c) { return c.zeros == 50; }},
      {"model.layout", "\"neuron\"", [](const Config& c) { return c.layout == "neuron"; }},
      {"model.layer_group", "4", [](const Config& c) { return c.layer_group == 4; }},
      {"model.experts", "\"channels\"", [](const Config& c) { return c.experts == "channels"; }},
      {"model.order", "\"rates.safetensors\"",
       [](const Config& c) { return c.order == "rates.safetensors"; }},
      {"model.encoding", "\"q4_0\"", [](const Config& c) { return c.encoding == "q4_0"; }},
      {"model.head_encoding", "\"q8_0\"", [](const Config& c) { return c.head_encoding == "q8_0"; }},
      {"model.compression", "\"bitmap\"", [](const Config& c) { return c.compression == "bitmap"; }},
      {"model.editions", "\"q8_0,q4_0\"", [](const Config& c) { return c.editions == "q8_0,q4_0"; }},
      {"model.bundling", "\"none\"", [](const Config& c) { return c.bundling == "none"; }},
      {"model.tokenizer", "\"t.json\"", [](const Config& c) { return c.tokenizer == "t.json"; }},
      {"run.threads", "3", [](const Config& c) { return c.threads == 3; }},
      {"run.context", "77", [](const Config& c) { return c.context == 77; }},
      {"run.sequences", "3", [](const Config& c) { return c.sequences == 3; }},
      {"run.ubatch", "9", [](const Config& c) { return c.ubatch == 9; }},
      {"run.kv", "\"f32\"", [](const Config& c) { return c.kv == "f32"; }},
      {"run.seed", "9000000000000000000", [](const Config& c) { return c.seed == 9000000000000000000u; }},
      {"run.bind", "false", [](const Config& c) { return !c.bind; }},
      {"run.clock", "\"model\"", [](const Config& c) { return c.clock == "model"; }},
      {"run.execute", "\"trace\"", [](const Config& c) { return c.execute == "trace"; }},
      {"run.machine", "\"m1\"", [](const Config& c) { return c.machine == "m1"; }},
      {"run.energy", "\"m2\"", [](const Config& c) { return c.energy == "m2"; }},
      {"run.dense", "\"dram.1\"", [](const Config& c) { return c.dense == "dram.1"; }},
      {"run.attention", "\"dram\"", [](const Config& c) { return c.attention == "dram"; }},
      {"run.trace", "\"run.trace\"", [](const Config& c) { return c.trace == "run.trace"; }},
      {"run.timeline", "\"run.json\"", [](const Config& c) { return c.timeline == "run.json"; }},
      {"compute.activations", "\"f32\"", [](const Config& c) { return c.activations == "f32"; }},
      {"compute.kernels", "\"scalar\"", [](const Config& c) { return c.kernels == "scalar"; }},
      {"tiers.flash.kind", "\"nvme\"", [](const Config& c) { return c.find_tier("flash")->kind == "nvme"; }},
      {"tiers.flash.thread", "\"own\"",
       [](const Config& c) { return c.find_tier("flash")->thread == "own"; }},
      {"tiers.flash.cores", "1", [](const Config& c) { return c.find_tier("flash")->cores == "1"; }},
      {"tiers.dram.kind", "\"numa\"", [](const Config& c) { return c.find_tier("dram")->kind == "numa"; }},
      {"tiers.dram.count", "2", [](const Config& c) { return c.find_tier("dram")->count == 2; }},
      {"tiers.dram.capacity", "\"50%\"",
       [](const Config& c) { return c.find_tier("dram")->capacity == "50%"; }},
      {"tiers.dram.staging", "1048576",
       [](const Config& c) { return c.find_tier("dram")->staging == "1048576"; }},
      {"tiers.dram.thread", "\"own\"", [](const Config& c) { return c.find_tier("dram")->thread == "own"; }},
      {"tiers.dram.compressed", "\"expanded\"",
       [](const Config& c) { return c.find_tier("dram")->compressed == "expanded"; }},
      {"tiers.dram.recode", "\"q8_0,q4_0\"",
       [](const Config& c) { return c.find_tier("dram")->recode == "q8_0,q4_0"; }},
      {"tiers.dram.cache.name", "\"lru\"",
       [](const Config& c) { return c.find_tier("dram")->cache.name == "lru"; }},
      {"tiers.dram.cache.fallback", "\"lru\"",
       [](const Config& c) { return c.find_tier("dram")->cache.fallback == "lru"; }},
      {"tiers.dram.cache.tensors", "\"t\"",
       [](const Config& c) { return c.find_tier("dram")->cache.tensors == "t"; }},
      {"tiers.dram.compute", "false", [](const Config& c) { return !c.find_tier("dram")->compute; }},
      {"tiers.dram.over", "\"near\"", [](const Config& c) { return c.find_tier("dram")->over == "near"; }},
      {"tiers.dram.link", "\"near, flash\"",
       [](const Config& c) { return c.find_tier("dram")->link == "near, flash"; }},
      {"pressure.source", "\"psi\"", [](const Config& c) { return c.pressure.source == "psi"; }},
      {"pressure.stall_ms", "150", [](const Config& c) { return c.pressure.stall_ms == 150; }},
      {"pressure.window_ms", "1000", [](const Config& c) { return c.pressure.window_ms == 1000; }},
      {"pressure.limit_percent", "80", [](const Config& c) { return c.pressure.limit_percent == 80; }},
      {"pressure.step", "\"5%\"", [](const Config& c) { return c.pressure.step == "5%"; }},
      {"pressure.least", "\"1 GiB\"", [](const Config& c) { return c.pressure.least == "1 GiB"; }},
      {"pressure.calm_ms", "60000", [](const Config& c) { return c.pressure.calm_ms == 60000; }},
      {"speculation.model", "\"d\"", [](const Config& c) { return c.speculation.model == "d"; }},
      {"speculation.lookup", "true", [](const Config& c) { return c.speculation.lookup; }},
      {"speculation.most", "7", [](const Config& c) { return c.speculation.most == 7; }},
      {"plugins.path", "\"/a:/b\"", [](const Config& c) { return c.plugin_path == "/a:/b"; }},
      {"run.agent_deadline_ms", "7", [](const Config& c) { return c.agent_deadline_ms == 7; }},
      {"plugins.deadline_ms", "7", [](const Config& c) { return c.plugin_deadline_ms == 7; }},
      {"predictor.name", "\"p\"", [](const Config& c) { return c.predictor.name == "p"; }},
      {"predictor.fallback", "\"f\"", [](const Config& c) { return c.predictor.fallback == "f"; }},
      {"predictor.tensors", "\"t\"", [](const Config& c) { return c.predictor.tensors == "t"; }},
      {"quantizer.name", "\"q\"", [](const Config& c) { return c.quantizer.name == "q"; }},
      {"quantizer.fallback", "\"f\"", [](const Config& c) { return c.quantizer.fallback == "f"; }},
      {"quantizer.tensors", "\"t\"", [](const Config& c) { return c.quantizer.tensors == "t"; }},
      {"cache.name", "\"lru\"", [](const Config& c) { return c.cache.name == "lru"; }},
      {"cache.fallback", "\"f\"", [](const Config& c) { return c.cache.fallback == "f"; }},
      {"cache.tensors", "\"t\"", [](const Config& c) { return c.cache.tensors == "t"; }},
      {"balancer.name", "\"b\"", [](const Config& c) { return c.balancer.name == "b"; }},
      {"balancer.fallback", "\"f\"", [](const Config& c) { return c.balancer.fallback == "f"; }},
      {"balancer.tensors", "\"t\"", [](const Config& c) { return c.balancer.tensors == "t"; }},
      {"heat.name", "\"h\"", [](const Config& c) { return c.heat.name == "h"; }},
      {"heat.fallback", "\"f\"", [](const Config& c) { return c.heat.fallback == "f"; }},
      {"heat.tensors", "\"t\"", [](const Config& c) { return c.heat.tensors == "t"; }},
      {"scheduler.prefetch", "false", [](const Config& c) { return !c.prefetch; }},
      {"scheduler.measure_every", "8", [](const Config& c) { return c.measure_every == 8; }},
      {"scheduler.shuffle", "17", [](const Config& c) { return c.shuffle == "17"; }},
  };
  return all;
}

TEST_F(ConfigTest, EveryKeyCanBeSetByFileAndBySet) {
  const auto defaults = load_config("", {});
  ASSERT_TRUE(defaults.ok());
  const std::string manual = config_manual();
  std::set<std::string> of_tiers;
  for (const KeyCase& key : keys()) {
    SCOPED_TRACE(key.key);
    EXPECT_FALSE(key.holds(*defaults)) << "a default shows nothing";
    std::string told = key.key;
    for (const char* tier : {"tiers.flash.", "tiers.dram."}) {
      if (told.starts_with(tier)) told = "tiers.NAME." + told.substr(std::strlen(tier));
    }
    EXPECT_THAT(manual, HasSubstr("  " + told + " "));
    if (told.starts_with("tiers.")) of_tiers.insert(told);
    const std::string assignment = std::string(key.key) + " = " + key.value;
    const auto from_file = load_config(file(assignment + "\n"), {});
    ASSERT_TRUE(from_file.ok()) << from_file.error().line();
    EXPECT_TRUE(key.holds(*from_file));
    const auto from_set = load_config("", {std::string(key.key) + "=" + key.value});
    ASSERT_TRUE(from_set.ok()) << from_set.error().line();
    EXPECT_TRUE(key.holds(*from_set));
    // The quotes may be omitted.
    std::string bare = key.value;
    std::erase(bare, '"');
    const auto from_bare = load_config("", {std::string(key.key) + "=" + bare});
    ASSERT_TRUE(from_bare.ok()) << from_bare.error().line();
    EXPECT_TRUE(key.holds(*from_bare));
  }
  const auto of_tiers_here = std::ranges::count_if(
      keys(), [](const KeyCase& key) { return std::string_view(key.key).starts_with("tiers."); });
  EXPECT_EQ(static_cast<size_t>(std::count(manual.begin(), manual.end(), '\n')),
            keys().size() - static_cast<size_t>(of_tiers_here) + of_tiers.size())
      << "a key that is not tested here";
}

TEST_F(ConfigTest, SetComesAfterTheFileAndInOrder) {
  const auto config =
      load_config(file("[run]\nthreads = 1\ncontext = 5\n"), {"run.threads=2", "run.threads=3"});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->threads, 3u);
  EXPECT_EQ(config->context, 5u);
}

// Parameters of a plugin are kept for it, with the place where they were set.
TEST_F(ConfigTest, OtherKeysOfAStrategyAreItsPlugins) {
  const std::string path = file("[cache]\nwindow = 5\naging = true\nshare = 0.5\norder = \"often\"\n");
  const auto config = load_config(path, {"cache.window=6", "predictor.rank=8"});
  ASSERT_TRUE(config.ok()) << config.error().line();
  const std::vector<Setting>& told = config->cache.settings;
  ASSERT_EQ(told.size(), 4u);
  const auto value_of = [&](const std::string& key) {
    return std::find_if(told.begin(), told.end(), [&](const Setting& s) { return s.key == key; });
  };
  EXPECT_EQ(std::get<int64_t>(value_of("window")->value), 6);
  EXPECT_EQ(value_of("window")->origin, "--set");
  EXPECT_EQ(std::get<bool>(value_of("aging")->value), true);
  EXPECT_EQ(value_of("aging")->origin, path + ":3");
  EXPECT_EQ(std::get<double>(value_of("share")->value), 0.5);
  EXPECT_EQ(std::get<std::string>(value_of("order")->value), "often");
  EXPECT_EQ(config->predictor.settings.size(), 1u);
  EXPECT_EQ(error_of("[cache]\nwindow = [1]\n"),
            "FILE:2: 'cache.window' must be a number, true, false or a string");
  EXPECT_EQ(error_of("[cache.window]\nx = 1\n"), "FILE:2: unknown key 'cache.window.x'");
}

TEST_F(ConfigTest, AnotherPluginIsNotToldWhatTheFileToldTheFirst) {
  const std::string path = file("[cache]\nname = \"a\"\nwindow = 5\n");
  EXPECT_EQ(load_config(path, {"cache.name=a"})->cache.settings.size(), 1u);
  EXPECT_EQ(load_config(path, {"cache.name=b"})->cache.settings.size(), 0u);
  EXPECT_EQ(load_config(path, {"cache.size=1", "cache.name=b"})->cache.settings.size(), 1u);
}

TEST_F(ConfigTest, TheTableCodecIsToldToWhatTheCompressionNames) {
  const std::string path = file("[model]\ncompression = \"zstd\"\n[codec]\nlevel = 9\n");
  const auto config = load_config(path, {});
  ASSERT_TRUE(config.ok()) << config.error().line();
  EXPECT_EQ(config->compression, "zstd");
  ASSERT_EQ(config->codec.size(), 1u);
  EXPECT_EQ(config->codec[0].key, "level");
  EXPECT_EQ(config->codec[0].origin, path + ":4");
  EXPECT_EQ(load_config(path, {"model.compression=zstd"})->codec.size(), 1u);
  EXPECT_EQ(load_config(path, {"model.compression=bitmap"})->codec.size(), 0u);
  EXPECT_EQ(changed_keys(*config, *load_config(path, {"codec.level=10"})),
            std::vector<std::string>{"codec.level"});
}

TEST_F(ConfigTest, OtherKeysOfATierAreItsAgents) {
  const std::string path = file("[tiers.flash]\ndevice = \"pread\"\ndepth = 5\n");
  const auto config = load_config(path, {"tiers.flash.depth=6", "tiers.dram.huge=true"});
  ASSERT_TRUE(config.ok()) << config.error().line();
  ASSERT_EQ(config->find_tier("flash")->settings.size(), 2u);
  EXPECT_EQ(config->find_tier("flash")->settings[0].key, "device");
  EXPECT_EQ(config->find_tier("flash")->settings[0].origin, path + ":2");
  EXPECT_EQ(std::get<int64_t>(config->find_tier("flash")->settings[1].value), 6);
  ASSERT_EQ(config->find_tier("dram")->settings.size(), 1u);
  EXPECT_EQ(std::get<bool>(config->find_tier("dram")->settings[0].value), true);
  // An agent of another kind does not receive the file's parameters.
  EXPECT_EQ(load_config(path, {"tiers.flash.kind="})->find_tier("flash")->settings.size(), 2u);
  EXPECT_EQ(load_config(path, {"tiers.flash.kind=nvme"})->find_tier("flash")->settings.size(), 0u);
  EXPECT_THAT(error_of("[tiers.flash.device]\nx = 1\n"),
              testing::StartsWith("FILE:2: unknown key 'tiers.flash.device.x'"));
}

TEST_F(ConfigTest, UnknownKeysSuggestTheNearest) {
  EXPECT_EQ(error_of("[run]\n\nthread = 4\n"),
            "FILE:3: unknown key 'run.thread'; did you mean 'run.threads'?");
  EXPECT_EQ(error_of("[dram]\ncapacity = 4\n"),
            "FILE:2: unknown key 'dram.capacity'; did you mean 'tiers.dram.capacity'?");
  EXPECT_EQ(error_of("cache = \"lru\"\n"), "FILE:1: unknown key 'cache'; did you mean 'cache.name'?");
  EXPECT_EQ(error_of("zzzzzzzzzzzzzzz = 1\n"), "FILE:1: unknown key 'zzzzzzzzzzzzzzz'");
  EXPECT_EQ(error_of("[[run]]\nthreads = 4\n").substr(0, 25), "FILE:1: unknown key 'run'");
  EXPECT_EQ(set_error("scheduler.prefetsch=true"),
            "--set: unknown key 'scheduler.prefetsch'; did you mean 'scheduler.prefetch'?");
}

TEST_F(ConfigTest, KeysOfAnyDepthAndLengthAreAnswered) {
  std::string deep;
  for (int i = 0; i < 60; ++i) deep += "a.";
  EXPECT_THAT(error_of(deep + "a = 1\n"), testing::StartsWith("FILE:1: unknown key 'a.a.a.a.a'"));
  EXPECT_THAT(error_of("[" + deep + "a]\nx = 1\n"), testing::StartsWith("FILE:1: unknown key 'a.a.a.a.a'"));
  const std::string length(200'000, 'a');
  EXPECT_EQ(error_of(length + " = 1\n"), "FILE:1: unknown key '" + length + "'");
  EXPECT_EQ(error_of("\"a\\nb\" = 1\n"), "FILE:1: unknown key 'a\\x0ab'");
}

TEST_F(ConfigTest, WrongTypesNameFileAndLine) {
  EXPECT_EQ(error_of("[run]\nthreads = \"many\"\n"), "FILE:2: 'run.threads' must be a whole number from 0");
  EXPECT_EQ(error_of("[run]\nthreads = -1\n"), "FILE:2: 'run.threads' must be a whole number from 0");
  EXPECT_EQ(error_of("[run]\nthreads = 4294967296\n"), "FILE:2: 'run.threads' must be a whole number from 0");
  EXPECT_EQ(error_of("[run]\nthreads = 1.5\n"), "FILE:2: 'run.threads' must be a whole number from 0");
  EXPECT_EQ(error_of("[run]\nbind = 1\n"), "FILE:2: 'run.bind' must be true or false");
  EXPECT_EQ(error_of("[cache]\nname = true\n"), "FILE:2: 'cache.name' must be a string");
  EXPECT_EQ(error_of("[cache]\nname = [1]\n"), "FILE:2: 'cache.name' must be a string");
  EXPECT_EQ(set_error("run.bind=perhaps"), "--set: 'run.bind' must be true or false");
}

TEST_F(ConfigTest, BadChoicesListTheGoodOnes) {
  EXPECT_EQ(error_of("[run]\nkv = \"f64\"\n"), "FILE:2: 'run.kv' is 'f64', expected one of f16|f32");
  EXPECT_EQ(set_error("tiers.flash.thread=mine"),
            "--set: 'tiers.flash.thread' is 'mine', expected one of kernel|own");
  EXPECT_EQ(set_error("run.kv="), "--set: 'run.kv' is '', expected one of f16|f32");
  EXPECT_EQ(set_error("run.kv=f16|f32"), "--set: 'run.kv' is 'f16|f32', expected one of f16|f32");
}

TEST_F(ConfigTest, ErrorsAreCollected) {
  const std::string path = file("[run]\nthreads = -1\nkvv = 1\n[cache]\nname = 1.5\n");
  const auto config = load_config(path, {"a.b=1", "run.bind=2", "nothing"});
  ASSERT_FALSE(config.ok());
  const std::string lines = config.error().line();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 5);
  EXPECT_THAT(lines, HasSubstr(path + ":2: 'run.threads'"));
  EXPECT_THAT(lines, HasSubstr(path + ":3: unknown key 'run.kvv'"));
  EXPECT_THAT(lines, HasSubstr(path + ":5: 'cache.name'"));
  EXPECT_THAT(lines, HasSubstr("--set: unknown key 'a.b'"));
  EXPECT_THAT(lines, HasSubstr("--set: 'run.bind'"));
  EXPECT_THAT(lines, HasSubstr("--set nothing: expected key=value"));
}

TEST_F(ConfigTest, FilesThatCannotBeRead) {
  const auto missing = load_config(testing::TempDir() + "no such file.toml", {});
  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_THAT(missing.error().line(), HasSubstr("no such file.toml: cannot open: No such file"));
  const auto folder = load_config(testing::TempDir(), {});
  EXPECT_EQ(folder.code(), Code::invalid_argument);
  EXPECT_THAT(folder.error().line(), HasSubstr("is a folder"));
}

TEST_F(ConfigTest, SyntaxErrorsNameTheLine) {
  EXPECT_THAT(error_of("[run]\nthreads = \n"), testing::StartsWith("FILE:2: "));
  EXPECT_THAT(error_of("[run]\nthreads = 1\nthreads = 2\n"), testing::StartsWith("FILE:3: "));
  EXPECT_THAT(error_of("[run\n"), testing::StartsWith("FILE:1: "));
  EXPECT_THAT(error_of(std::string("a = \"\xff\"\n")), testing::StartsWith("FILE:1: "));
  EXPECT_THAT(error_of(std::string(100'000, '[')), testing::StartsWith("FILE:1: "));
  for (const char* wrong : {"=1", "=", "a b=1", "run.threads=1\nrun.bind=false oops", "[x]=1"}) {
    EXPECT_NE(set_error(wrong), "accepted") << wrong;
  }
}

TEST_F(ConfigTest, DepthSizeAndErrorsAreBounded) {
  std::string dotted = "a", quoted = "\"a\"", inner = "1";
  for (int i = 0; i < 40'000; ++i) dotted += ".a", quoted += ".'a'";
  for (int i = 0; i < 200; ++i) inner = "{ a = " + inner + " }";
  for (const std::string& deep :
       {dotted + " = 1\n", "[" + dotted + "]\n", quoted + " = 1\n", "a = " + inner + "\n"})
    EXPECT_THAT(error_of("\n" + deep),
                testing::StartsWith("FILE:2: tables or arrays are nested more than 64 levels deep"));
  EXPECT_THAT(set_error(dotted + "=1"), HasSubstr("nested more than 64"));
  // Dots in strings, comments and numbers do not belong to a key.
  EXPECT_THAT(error_of("a = '" + dotted + "' # " + dotted + "\n"), HasSubstr("unknown key 'a'"));
  EXPECT_THAT(error_of("a = \"\"\"\n" + dotted + "\\\"\"\"\"\n"), HasSubstr("unknown key 'a'"));
  std::string numbers = "a = [";
  for (int i = 0; i < 100; ++i) numbers += "1.5, ";
  EXPECT_THAT(error_of(numbers + "]\n"), HasSubstr("unknown key 'a'"));

  std::string many;
  for (int i = 0; i < 30'000; ++i) many += "key_" + std::to_string(i) + " = 1\n";
  const std::string lines = error_of(many);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 20);
  EXPECT_THAT(lines, testing::EndsWith("and 29980 more"));
  EXPECT_THAT(error_of(std::string(2 << 20, '#')), HasSubstr("has more than 1048576 bytes"));
}

TEST_F(ConfigTest, AnyBareWordIsAString) {
  for (const char* path : {"/a/b c.gguf", "C:\\x\"y", "~/m=1.gguf", "ünï.gguf", "7b", "1.5b"}) {
    const auto config = load_config("", {std::string("model.path=") + path});
    ASSERT_TRUE(config.ok()) << config.error().line();
    EXPECT_EQ(config->model, path);
  }
  EXPECT_EQ(set_error("model.path=a\tb\x01"), set_error("model.path=a\tb\x01"));  // the same answer twice
}

TEST_F(ConfigTest, WhatHasChangedIsNamed) {
  const auto keys = [](const std::vector<std::string>& before, const std::vector<std::string>& after) {
    return changed_keys(*load_config("", before), *load_config("", after));
  };
  using testing::ElementsAre;
  EXPECT_THAT(keys({}, {}), ElementsAre());
  EXPECT_THAT(keys({"cache.name=lru", "cache.k=3"}, {"cache.k=3", "cache.name=lru"}), ElementsAre());
  EXPECT_THAT(keys({}, {"tiers.dram.capacity=50%", "run.seed=3", "run.bind=false"}),
              ElementsAre("run.seed", "run.bind", "tiers.dram.capacity"));
  EXPECT_THAT(keys({"cache.k=3", "tiers.flash.depth=8", "cache.most=0.5"}, {"cache.k=4", "cache.new=true"}),
              ElementsAre("tiers.flash.depth", "cache.k", "cache.new", "cache.most"));
}

TEST_F(ConfigTest, OurConfigsAreGood) {
  for (const char* name :
       {"resident", "naive", "hybrid", "accelerate", "zero-infinity", "endor", "ablation/endor-direct"}) {
    const auto config = load_config(std::string(TIERD_SOURCE_DIR "/configs/") + name + ".toml", {});
    EXPECT_TRUE(config.ok()) << config.error().line();
  }
}

}  // namespace
}  // namespace tierd
