// Hermes on eight DIMMs and a GPU, both emulated by the host: wherever neurons move, the tokens equal those
// of the resident run, and the logits differ only as much as sums in another order do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "core/watch/trace/reader.h"
#include "tests/e2e/shipped_configuration.h"
#include "tests/tier/trace/recorded_run.h"

namespace tierd {
namespace {

using testing::HasSubstr;

constexpr uint32_t kText = 16;  // tokens of the prompt
constexpr uint32_t kMore = 40;

// The counters of the units' work at the end of a run.
struct UnitCounts {
  std::vector<SiteLoad> sites;
  uint32_t window = 0;
};

class Hermes : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cache_ = use_test_cache();
    Config config;
    config.model = kDemo;
    config.layout = "neuron";
    resident_ = new Said(say(config));
  }
  static void TearDownTestSuite() {
    delete resident_;
    std::filesystem::remove_all(cache_);
  }

  struct Said {
    std::vector<float> logits;
    std::vector<uint32_t> tokens;
    std::map<std::string, double> table, gpu, balancer;  // metrics of the strategies
    uint64_t between_dimms = 0;                          // neurons moved between DIMMs
    uint64_t decode_ns = 0;
    UnitCounts counted;  // by the kernel, at the end
  };
  // The GPU has room for the weights that every step uses whole and for copies of neurons.
  static Config hermes() {
    Config config = configuration("hermes", kDemo, true);
    config.tier("gpu").capacity = "60%";
    return config;
  }
  static void check(const Said& said) {
    EXPECT_EQ(said.tokens, resident_->tokens);
    ASSERT_EQ(said.logits.size(), resident_->logits.size());
    float most = 0, worst = 0;
    for (size_t i = 0; i < said.logits.size(); ++i) {
      most = std::max(most, std::fabs(resident_->logits[i]));
      worst = std::max(worst, std::fabs(said.logits[i] - resident_->logits[i]));
    }
    EXPECT_LT(worst, most * 1e-3) << "of logits up to " << most;
  }

  // Feeds a prompt, then generates greedily.
  static Said say(Config config) {
    config.threads = 1;
    config.bind = false;
    config.context = 64;
    config.kv = "f32";
    config.activations = "f32";
    RuntimeOptions options;
    options.quiet = true;
    options.fit = true;
    options.logit_rows = kText;
    Said said;
    auto made = make_runtime(config, options);
    EXPECT_TRUE(made.ok()) << made.error().line();
    if (!made.ok()) return said;
    Runtime& runtime = **made;
    EXPECT_TRUE(runtime.load().ok());
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < kText; ++i) all.push_back(300 + i * 97 % 1200);
    Engine& engine = runtime.engine();
    for (uint32_t done = 0; done < kText + kMore;) {
      const uint32_t n = done == 0 ? kText : 1;
      const Status fed = feed(engine, all, done, n, said.logits);
      EXPECT_TRUE(fed.ok()) << fed.error().line();
      if (!fed.ok()) return said;
      done += n;
      if (done < all.size()) continue;
      const std::span<const float> last = std::span(said.logits).last(engine.vocab_size());
      all.push_back(static_cast<uint32_t>(std::max_element(last.begin(), last.end()) - last.begin()));
    }
    EXPECT_TRUE(engine.drain().ok());
    EXPECT_TRUE(runtime.end_recording().ok());
    said.tokens = std::move(all);
    said.counted = {runtime.scheduler().loads().sites(), runtime.scheduler().loads().window()};
    const StrategySet& strategies = runtime.strategies();
    said.decode_ns = engine.decode_times().wall_ns;
    said.table = strategies.instance("heat").metrics();
    said.balancer = strategies.instance("balancer").metrics();
    if (config.find_tier("gpu") != nullptr) said.gpu = strategies.instance("cache", "gpu").metrics();
    const std::vector<Link>& links = runtime.plan().tiers.topology.links;
    for (size_t l = 0; l < links.size(); ++l) {
      const auto name = [&](MemoryId memory) { return runtime.plan().tiers.tier_of(memory).config.name; };
      if (links[l].from != kStore && name(links[l].from) == "ndp" && name(links[l].to) == "ndp")
        said.between_dimms += runtime.scheduler().link_counters(l).neurons;
    }
    return said;
  }

  static inline Said* resident_ = nullptr;
  static inline std::string cache_;
};

TEST_F(Hermes, WritesTheTokensOfTheResidentRun) {
  const Said said = say(hermes());
  check(said);
  EXPECT_GT(said.gpu.at("moved in"), 0) << "hot neurons have come to the GPU";
  EXPECT_GT(said.between_dimms, 0u) << "and cold ones from DIMM to DIMM";
  EXPECT_LE(said.balancer.at("planned imbalance after"), said.balancer.at("planned imbalance before"));
  EXPECT_GT(said.balancer.at("hot share"), 0);
  // Half a byte for each of 6 x 1536 neurons.
  EXPECT_LT(said.table.at("state bytes"), 16 << 10);
}

TEST_F(Hermes, WhateverIsLeftOutOfIt) {
  struct Variant {
    const char* name;
    void (*change)(Config&);
  };
  const auto set = [](StrategyConfig& strategy, const char* key, auto value) {
    std::erase_if(strategy.settings, [&](const Setting& s) { return s.key == key; });
    strategy.settings.push_back({key, value, "test"});
  };
  static const auto set_it = set;
  const Variant variants[] = {
      {"no heat", [](Config& c) { c.heat = {}; }},
      {"no remapping", [](Config& c) { set_it(c.balancer, "window", int64_t{0}); }},
      {"by lot", [](Config& c) { set_it(c.balancer, "start", std::string("random")); }},
      {"prompts by all", [](Config& c) { set_it(c.balancer, "prompts_hot", false); }},
      {"states alone", [](Config& c) { set_it(c.heat, "by", std::string("tokens")); }},
      {"two DIMMs", [](Config& c) { c.tier("ndp").count = 2; }},
      {"workers of their own", [](Config& c) { c.tier("ndp").thread = "own", c.threads = 2; }},
      {"a small GPU", [](Config& c) { c.tier("gpu").capacity = "15%"; }},
      {"links that take time",
       [](Config& c) {
         for (const char* tier : {"gpu", "ndp"}) {
           for (Setting& setting : c.tier(tier).settings) {
             if (setting.key == "link_rate") setting.value = std::string("200 MB");
           }
         }
       }},
      {"shuffled", [](Config& c) { c.shuffle = "3"; }},
      {"attention on the GPU", [](Config& c) { c.attention = ""; }},
  };
  for (const Variant& variant : variants) {
    SCOPED_TRACE(variant.name);
    Config config = hermes();
    variant.change(config);
    check(say(config));
  }
}

// In the paper machine's virtual time, when a neuron arrives does not depend on this machine.
TEST_F(Hermes, TakesTheSameVirtualTimeInEveryRun) {
  Config config = hermes();
  for (TierConfig& tier : config.tiers)
    std::erase_if(tier.settings, [](const Setting& s) { return s.key == "link_rate"; });
  config.clock = "model";
  config.machine = "rtx4090-8ndp";
  const Said first = say(config), second = say(config);
  check(first);
  EXPECT_GT(first.gpu.at("moved in"), 0);
  EXPECT_GT(first.decode_ns, 0u);
  EXPECT_EQ(second.decode_ns, first.decode_ns);
  EXPECT_EQ(second.logits, first.logits);
  config.machine = "rtx4090-16ndp";
  config.tier("ndp").count = 16;
  check(say(config));
}

TEST_F(Hermes, DecidesTheSameWhenItIsPlayedAgain) {
  Config config = hermes();
  config.kv = "f32";
  config.trace = testing::TempDir() + "hermes-" + std::to_string(getpid()) + ".trace";
  History history;
  run(config, history);
  expect_the_same(config, history);
  std::filesystem::remove(config.trace);
}

// The executed load equals a sum by plain loops over the trace: the neurons of completed runs.
TEST_F(Hermes, LoadsAreThoseOfTheTrace) {
  constexpr uint32_t kDimms = 8, kTiers = 2;
  for (const int64_t window : {0, 3, 5}) {
    Config config = hermes();
    std::erase_if(config.balancer.settings, [](const Setting& s) { return s.key == "window"; });
    config.balancer.settings.push_back({"window", window, "test"});
    config.predictor = {"low-rank"};
    config.predictor.tensors = std::string(kDemo) + "/predictor-r64.safetensors";
    config.trace = testing::TempDir() + "loads-" + std::to_string(getpid()) + ".trace";
    const Said said = say(config);
    const uint32_t of = window == 0 ? 5 : static_cast<uint32_t>(window);
    ASSERT_EQ(said.counted.window, of);

    auto reader = TraceReader::open(config.trace);
    ASSERT_TRUE(reader.ok()) << reader.error().line();
    const Topology& topology = reader->header().scheduler.topology;
    ASSERT_EQ(topology.units.size(), kDimms + 1u);
    const auto unit_of = [&](uint16_t agent) {
      return std::ranges::find(topology.units, agent, &ComputeUnit::agent) - topology.units.begin();
    };
    std::map<uint32_t, Message> posted;                                  // by slot
    std::map<std::pair<SiteId, uint32_t>, std::vector<uint64_t>> loads;  // [site, window][units]
    std::map<SiteId, uint32_t> passes;
    bool prompt = false;
    while (const Event* event = reader->peek()) {
      if (const auto* begins = event->as<PassBegins>()) {
        prompt = begins->bypass_caches;
        if (!prompt) loads[{begins->site, passes[begins->site]++ / of}].resize(kDimms + 1);
      }
      if (const auto* post = event->as<Posted>()) posted[post->message.id.slot] = post->message;
      if (const auto* end = event->as<Delivered>()) {
        const Message& message = posted[end->done.id.slot];
        if (message.op == Op::run && !prompt && end->done.status == DoneStatus::ok)
          loads[{message.site, (passes[message.site] - 1) / of}][unit_of(message.agent)] += message.n_units;
      }
      reader->next();
    }
    ASSERT_TRUE(reader->whole());
    std::filesystem::remove(config.trace);
    uint64_t compared = 0;
    for (SiteId s = 0; s < said.counted.sites.size(); ++s) {
      const SiteLoad& counted = said.counted.sites[s];
      ASSERT_EQ(counted.tiers.size(), kTiers);
      EXPECT_EQ(counted.passes, passes[s]);
      const auto dimms = std::ranges::find_if(topology.units, [&](const ComputeUnit& unit) {
        return topology.memory(unit.memory).name == "ndp";
      });
      const auto first = static_cast<size_t>(dimms - topology.units.begin());
      std::vector<uint64_t> all(kDimms + 1);
      double imbalances = 0;
      uint64_t windows = 0;
      for (uint32_t w = 0; w * of < passes[s]; ++w) {
        const std::vector<uint64_t>& load = loads[{s, w}];
        for (size_t u = 0; u < load.size(); ++u) all[u] += load[u];
        const auto of_dimms = std::span(load).subspan(first, kDimms);
        const uint64_t sum = std::accumulate(of_dimms.begin(), of_dimms.end(), uint64_t{0});
        if ((w + 1) * of > passes[s] || sum == 0) continue;
        ++windows;
        imbalances += static_cast<double>(std::ranges::max(of_dimms)) / (static_cast<double>(sum) / kDimms);
      }
      for (size_t u = 0; u < all.size(); ++u) EXPECT_EQ(counted.units[u].neurons, all[u]);
      const TierWork& of_tier = counted.tiers[first == 0 ? 0 : 1];
      EXPECT_EQ(of_tier.windows, windows);
      if (windows == 0) continue;
      EXPECT_NEAR(of_tier.imbalance(), imbalances / static_cast<double>(windows), 1e-9);
      ++compared;
    }
    EXPECT_EQ(compared, 6u) << "the networks of the demo's layers";
  }
}

TEST_F(Hermes, WhatCannotBeIsRefused) {
  const auto refused = [](auto change) {
    Config config = hermes();
    change(config);
    RuntimeOptions options;
    options.quiet = true;
    options.fit = true;
    const auto made = make_runtime(config, options);
    return made.ok() ? "accepted" : made.error().line();
  };
  EXPECT_THAT(refused([](Config& c) { c.heat = {"dense"}; }),
              HasSubstr("heat.name: predictor 'dense' does not measure heat (it has no extension"));
  EXPECT_THAT(refused([](Config& c) { c.layout = "row"; }),
              testing::AllOf(testing::StartsWith("heat.name: "), HasSubstr("has no neurons that fire"),
                             testing::EndsWith("--set heat.name=")));
  // Behind a SiLU every neuron fires.
  for (const char* heat : {"state-table", "firing-rate"}) {
    const std::string error = refused([&](Config& c) {
      c.model = std::string(TIERD_SOURCE_DIR) + "/tests/golden/models/llama2";
      c.heat = {heat};
    });
    EXPECT_THAT(error, HasSubstr("heat '" + std::string(heat) + "': could not be created: no neuron of "));
    EXPECT_THAT(error, HasSubstr("tests/golden/models/llama2 is ever silent"));
    EXPECT_THAT(error, testing::EndsWith("--set predictor.name=dense --set heat.name="));
  }
  // The error names the table that has the setting, not the kind of the plugin.
  const auto set = [](StrategyConfig& strategy, const char* key) {
    std::erase_if(strategy.settings, [&](const Setting& s) { return s.key == key; });
    strategy.settings.push_back({key, int64_t{99}, "--set"});
  };
  EXPECT_THAT(refused([&](Config& c) { set(c.heat, "lambda"); }),
              HasSubstr("--set: 'heat.lambda' is 99, a whole number within 0 and 15 was expected"));
  EXPECT_THAT(refused([&](Config& c) { set(c.tier("gpu").cache, "hot"); }),
              HasSubstr("--set: 'tiers.gpu.cache.hot' is 99"));
  EXPECT_THAT(refused([](Config& c) { c.heat.name = "state-tabel"; }),
              HasSubstr("heat.name: there is no predictor 'state-tabel'"));
  EXPECT_THAT(refused([](Config& c) { c.heat.fallback = "densee"; }),
              HasSubstr("heat.fallback: there is no predictor 'densee'"));
  EXPECT_THAT(refused([](Config& c) { c.tier("ndp").cache.name = "hom"; }),
              HasSubstr("tiers.ndp.cache.name: there is no cache 'hom'"));
  EXPECT_THAT(refused([](Config& c) { c.tier("ndp").link = "gpu"; }),
              HasSubstr("tiers.ndp.link: 'gpu' is not below"));
  EXPECT_THAT(refused([](Config& c) { c.tier("ndp").count = 1; }),
              HasSubstr("' has one memory, which cannot fetch from itself"));
  EXPECT_THAT(refused([](Config& c) { c.tier("ndp").count = 40; }), HasSubstr("more than 32 memories"));
}

}  // namespace
}  // namespace tierd
