// Tiers over each other as configured: the bits equal those of the resident run wherever neurons are, and a
// trace of each run replays.
#include <gmock/gmock.h>

#include <functional>
#include <set>

#include "tests/e2e/described_machine.h"
#include "tests/engine/model_world.h"
#include "tests/store/memory_source.h"
#include "tests/tier/trace/recorded_run.h"

namespace tierd {
namespace {

using testing::HasSubstr;

class Tiers : public testing::Test {
 protected:
  static void SetUpTestSuite() { world_ = new ModelWorld(small_llama(), Encoding::f32); }
  static void TearDownTestSuite() { delete world_; }

  static Config base() {
    Config config;
    config.model = world_->folder();
    config.threads = 1;
    config.bind = false;
    config.context = 32;
    return config;
  }
  // DRAM holds a part of the store, and a computing memory over it holds a part of that.
  static Config chain() {
    Config config = base();
    config.tier("dram").capacity = "60%";
    config.tier("dram").compute = false;
    TierConfig& near = config.tier("near");
    near.kind = "dram";
    near.over = "dram";
    near.capacity = "40%";
    return config;
  }
  static std::string trace_path() {
    return testing::TempDir() + "tiers-" + std::to_string(getpid()) + ".trace";
  }

  static inline ModelWorld* world_ = nullptr;
};

// Sets the link's rate to 50 MB/s.
void slow_link(TierConfig& tier, bool there = true) {
  if (!there) return;
  tier.settings = {{"link_rate", std::string("50 MB"), "test"}, {"link_latency_us", int64_t{20}, "test"}};
}

// Lets the tier's agent read the store directly.
void directly(TierConfig& tier) {
  tier.settings.push_back({"direct", true, "test"});
}

struct Variant {
  const char* name;
  std::function<void(Config&)> change;
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"pinned", [](Config&) {}},
      {"lru", [](Config& c) { c.cache.name = "lru"; }},
      {"lfu without prefetch", [](Config& c) { c.cache.name = "lfu", c.prefetch = false; }},
      {"a cache each", [](Config& c) { c.cache.name = "lru", c.tier("dram").cache.name = "layer-map"; }},
      {"a cache each, a GPU, shuffled",
       [](Config& c) {
         c.tier("near").kind = "gpu", c.tier("near").cache.name = "lru", c.tier("dram").cache.name = "fifo";
         c.shuffle = "14";
       }},
      {"layers ahead below", [](Config& c) { c.cache.name = "lru", c.tier("dram").cache.name = "layers"; }},
      {"layers ahead below a GPU, shuffled",
       [](Config& c) {
         c.tier("near").kind = "gpu", c.cache.name = "lru", c.shuffle = "15";
         c.tier("dram").cache.name = "layers", c.tier("dram").staging = "50%";
       }},
      {"layers ahead below two GPUs that predict, too",
       [](Config& c) {
         c.tier("near").kind = "gpu", c.tier("near").count = 2, c.tier("near").capacity = "60%";
         c.balancer.name = "round-robin", c.cache.name = "layers";
       }},
      {"nothing is kept", [](Config& c) { c.cache.name = "none"; }},
      {"shuffled", [](Config& c) { c.cache.name = "lru", c.shuffle = "3"; }},
      {"all in both", [](Config& c) { c.tier("dram").capacity = c.tier("near").capacity = "all"; }},
      {"the store is linked, too",
       [](Config& c) { c.cache.name = "lru", c.tier("near").link = "dram, flash"; }},
      {"threads of their own",
       [](Config& c) {
         c.cache.name = "lru", c.threads = 2;
         for (TierConfig& tier : c.tiers) tier.thread = "own";
       }},
      {"two over one, dealt out",
       [](Config& c) {
         c.cache.name = "lru", c.tier("near").count = 2, c.tier("near").capacity = "60%";
         c.balancer.name = "round-robin";
       }},
      {"two over two",
       [](Config& c) {
         c.tier("dram").count = c.tier("near").count = 2, c.tier("near").capacity = "60%";
         c.balancer.name = "round-robin";
       }},
      {"both compute",
       [](Config& c) {
         c.cache.name = "lru", c.tier("dram").compute = true, c.balancer.name = "round-robin";
       }},
      {"both compute, dense above, heads divided",
       [](Config& c) {
         c.tier("dram").compute = true, c.tier("near").count = 2, c.tier("near").capacity = "60%";
         c.balancer.name = "round-robin", c.dense = "near.1", c.attention = "near";
       }},
      {"For layout channel-group: a file of rates, written by tier profile --thresholds; the channels with "
       "the highest rates are stored next to each other (default: in the order of their numbers)",
       [](Config& c) {
         c.tier("dram").compute = true, c.tier("near").over = "", c.balancer.name = "round-robin";
         c.dense = "near", c.shuffle = "5";
       }},
      {"three of them",
       [](Config& c) {
         TierConfig& top = c.tier("top");
         top.kind = "dram", top.over = "near", top.capacity = "30%";
         c.tier("near").compute = false, c.cache.name = "lru";
       }},
      {"whole layers", [](Config& c) { c.cache.name = "layer-map"; }},
      {"whole layers, two over two, both compute",
       [](Config& c) {
         c.cache.name = "layer-map", c.balancer.name = "round-robin";
         c.tier("dram").compute = true, c.tier("near").count = 2, c.tier("near").capacity = "60%";
       }},
      {"a GPU", [](Config& c) { c.tier("near").kind = "gpu"; }},
      {"a GPU with whole layers",
       [](Config& c) { c.tier("near").kind = "gpu", c.cache.name = "layer-map", slow_link(c.tier("near")); }},
      {"a GPU, lru, shuffled",
       [](Config& c) { c.tier("near").kind = "gpu", c.cache.name = "lru", c.shuffle = "11"; }},
      {"a GPU over a slow link",
       [](Config& c) { c.tier("near").kind = "gpu", c.cache.name = "lru", slow_link(c.tier("near")); }},
      {"a GPU with a thread of its own over a slow link",
       [](Config& c) {
         c.tier("near").kind = "gpu", c.cache.name = "lru", slow_link(c.tier("near"));
         c.threads = 2, c.tier("near").thread = c.tier("flash").thread = "own";
       }},
      {"a GPU has the dense part, both have neurons",
       [](Config& c) {
         c.tier("near").kind = "gpu", c.cache.name = "lru", c.dense = "near";
         c.tier("dram").compute = true, c.balancer.name = "round-robin";
       }},
      {"a GPU has neurons, heads are divided",
       [](Config& c) {
         c.tier("near").kind = "gpu", c.shuffle = "12";
         c.tier("dram").compute = true, c.tier("dram").count = 2, c.balancer.name = "round-robin";
         c.tier("near").count = 2, c.tier("near").capacity = "60%", c.attention = "near";
       }},
      {"a GPU has the dense part alone",
       [](Config& c) { c.tier("near").kind = "gpu", c.dense = "near", c.tier("dram").compute = true; }},
      {"a GPU reads directly",
       [](Config& c) { c.tier("near").kind = "gpu", c.cache.name = "layer-map", directly(c.tier("near")); }},
      {"a GPU with a thread of its own reads directly, lru, shuffled",
       [](Config& c) {
         c.tier("near").kind = "gpu", c.cache.name = "lru", directly(c.tier("near"));
         c.threads = 2, c.tier("near").thread = "own", c.shuffle = "13";
       }},
      {"two GPUs read directly",
       [](Config& c) {
         c.tier("near").kind = "gpu", c.tier("near").count = 2, c.tier("near").capacity = "60%";
         c.balancer.name = "round-robin", directly(c.tier("near"));
       }},
      {"two GPUs",
       [](Config& c) {
         c.tier("near").kind = "gpu", c.tier("near").count = 2, c.tier("near").capacity = "60%";
         c.balancer.name = "round-robin", c.dense = "near.1", c.attention = "near";
       }},
  };
  return all;
}

TEST_F(Tiers, GiveTheBitsOfTheResidentRun) {
  History expected;
  run(base(), expected);
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    Config config = chain();
    variant.change(config);
    History history;
    run(config, history);
    if (HasFatalFailure()) return;
    expect_the_same_bits(history.logits, expected.logits);
  }
}

TEST_F(Tiers, AreReplayed) {
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    Config config = chain();
    variant.change(config);
    config.trace = trace_path();
    History history;
    run(config, history);
    if (HasFatalFailure()) return;
    expect_the_same(config, history);
  }
}

// Both budgets grow and shrink. A memory keeps its neurons when the memory below it shrinks.
TEST_F(Tiers, BudgetsOfBothMove) {
  History expected;
  run(base(), expected);
  struct Case {
    const char* kind;
    const char* cache;
  };
  for (const auto& [kind, cache] : {Case{"dram", "lru"}, Case{"dram", "pinned"}, Case{"gpu", "lru"},
                                    Case{"dram", "layer-map"}, Case{"gpu", "layer-map"}}) {
    SCOPED_TRACE(std::string(kind) + ", " + cache);
    Config config = chain();
    config.tier("near").kind = kind;
    config.cache.name = cache;
    config.trace = trace_path();
    History history;
    run(config, history, [&](Runtime& runtime, uint32_t i) {
      Status status;
      const uint64_t other = runtime.budget(i % 2 == 1 ? 1 : 0).used();
      if (i == 7) status = runtime.set_capacity("30%", true, 0);
      if (i == 8) status = runtime.set_capacity("70%", true, 1);
      if (i == 11) status = runtime.set_capacity("all", true, 0);
      if (i == 12) status = runtime.set_capacity("1", true, 1);
      EXPECT_TRUE(status.ok()) << status.error().line();
      if (config.cache.name != "layer-map") {
        EXPECT_EQ(runtime.budget(i % 2 == 1 ? 1 : 0).used(), other);
      }
      for (const size_t tier : {0, 1})
        EXPECT_LE(runtime.budget(tier).used(), runtime.budget(tier).capacity());
      if (i == 12) {
        ASSERT_EQ(runtime.budget_changes().size(), 4u);
        EXPECT_EQ(runtime.budget_changes()[3].tier, 1u);
        EXPECT_TRUE(runtime.budget_changes()[3].raised_to_least);
      }
    });
    expect_the_same_bits(history.logits, expected.logits);
    expect_the_same(config, history);
  }
}

// Returns the number of whole resident layers of each memory.
std::vector<uint32_t> whole_layers(const Runtime& runtime) {
  const SiteTable& sites = runtime.plan().model.sites;
  std::vector<uint32_t> layers;
  for (const Residency& residency : runtime.residencies()) {
    std::set<uint16_t> all, in_part;
    for (SiteId s = 0; s < sites.size(); ++s) {
      if (sites[s].layer == UINT16_MAX) continue;
      all.insert(sites[s].layer);
      if (residency.valid_count(sites.best(s)) != sites[s].n) in_part.insert(sites[s].layer);
    }
    layers.push_back(static_cast<uint32_t>(all.size() - in_part.size()));
  }
  return layers;
}

// A layer that one memory gives up for lack of room is kept by the other at once, never by both.
TEST_F(Tiers, TheMapOfLayersFollowsTheBudgets) {
  Config config = chain();
  config.cache.name = "layer-map";
  config.tier("near").kind = "gpu";
  config.tier("dram").capacity = config.tier("near").capacity = "all";
  auto made = make_runtime(config, quiet());
  ASSERT_TRUE(made.ok()) << made.error().line();
  Runtime& runtime = **made;
  ASSERT_TRUE(runtime.load().ok());
  const uint32_t all = whole_layers(runtime)[1];
  EXPECT_THAT(whole_layers(runtime), testing::ElementsAre(0, all));
  const auto resident = [&](size_t tier) {
    for (const Budget::Line& line : runtime.budget(tier).lines()) {
      if (line.name == "resident weights") return line.bytes;
    }
    return uint64_t{0};
  };
  EXPECT_EQ(resident(0), 0u);
  const uint64_t whole = resident(1);
  ASSERT_TRUE(runtime.set_capacity("1", true, 1).ok());
  EXPECT_THAT(whole_layers(runtime), testing::ElementsAre(all, 0));
  EXPECT_EQ(resident(0), whole);
  EXPECT_EQ(resident(1), 0u);
  ASSERT_TRUE(runtime.set_capacity("all", false, 1).ok());
  EXPECT_THAT(whole_layers(runtime), testing::ElementsAre(0, all));
  EXPECT_EQ(resident(0), 0u);
  // A cache that replaces another one has its slots from the next step on.
  const std::string half = std::to_string(runtime.least_capacity(1) + whole * 6 / 10);
  ASSERT_TRUE(runtime.set_capacity(half, false, 1).ok());
  const std::vector<uint32_t> some = whole_layers(runtime);
  EXPECT_EQ(some[0] + some[1], all);
  EXPECT_GT(some[0] * some[1], 0u);
  ASSERT_TRUE(runtime.swap("cache", StrategyConfig{"pinned"}).ok());
  ASSERT_TRUE(runtime.set_capacity(half, false, 1).ok());
  EXPECT_EQ(whole_layers(runtime)[1], 0u);
  ASSERT_TRUE(runtime.swap("cache", StrategyConfig{"layer-map"}).ok());
  std::vector<float> logits;
  ASSERT_TRUE(feed(runtime.engine(), kTokens, 0, 1, logits).ok());
  ASSERT_TRUE(feed(runtime.engine(), kTokens, 1, 1, logits).ok());
  EXPECT_EQ(whole_layers(runtime)[1], some[1]);
}

TEST_F(Tiers, WhatCrossesALinkIsCounted) {
  Config config = chain();
  RuntimeOptions options = quiet();
  auto made = make_runtime(config, options);
  ASSERT_TRUE(made.ok()) << made.error().line();
  Runtime& runtime = **made;
  ASSERT_TRUE(runtime.load().ok());
  const PlannedTraffic planned = *runtime.planned_traffic();
  const std::vector<TierLink> before = runtime.links();
  ASSERT_EQ(before.size(), 2u);
  std::vector<float> logits;
  ASSERT_TRUE(feed(runtime.engine(), kTokens, 0, 1, logits).ok());
  ASSERT_TRUE(runtime.engine().drain().ok());
  const std::vector<TierLink> after = runtime.links();
  EXPECT_EQ(after[0].from + " " + after[0].to, "flash dram");
  EXPECT_EQ(after[1].from + " " + after[1].to, "dram near");
  // A step transfers what the plan says, and look-ahead has begun the next step.
  EXPECT_GE(after[1].counters.bytes - before[1].counters.bytes, planned.link_bytes[1]);
  EXPECT_GE(after[0].counters.bytes - before[0].counters.bytes, planned.link_bytes[0]);
  EXPECT_GT(planned.link_bytes[1], planned.link_bytes[0]);
  EXPECT_GT(planned.link_bytes[0], 0u);
  EXPECT_EQ(planned.streamed_bytes, planned.link_bytes[0]);
  EXPECT_EQ(planned.resident() + planned.link_bytes[1], planned.computed_bytes);
  // The lower memory's cache sees only the misses of the upper one.
  const MemoryCounters lower = runtime.counters(0), upper = runtime.counters(1);
  EXPECT_GE(lower.passed_on.hits + lower.passed_on.staged + lower.passed_on.misses, upper.misses);
  EXPECT_GT(lower.passed_on.hits, 0u);
  EXPECT_EQ(lower.hits + lower.staged + lower.misses, 0u) << "nobody computes from it";
  EXPECT_EQ(upper.passed_on.hits + upper.passed_on.staged + upper.passed_on.misses, 0u);
  EXPECT_EQ(runtime.scheduler().counters().hits, upper.hits);
  EXPECT_EQ(runtime.scheduler().counters().misses, upper.misses);
}

// Computed neurons are counted once, also where a memory that units compute from feeds another one.
TEST_F(Tiers, WhatIsComputedIsCountedOnce) {
  const auto computed = [](const Config& config) {
    History history;
    run(config, history);
    return history.counters.hits + history.counters.staged + history.counters.misses;
  };
  Config both = chain();
  both.tier("dram").compute = true;
  both.balancer.name = "round-robin";
  EXPECT_EQ(computed(both), computed(base()));
}

TEST_F(Tiers, LiveInVirtualTime) {
  const std::string machine = testing::TempDir() + "tiers-" + std::to_string(getpid()) + ".toml";
  write_machine(machine);
  History expected;
  run(base(), expected);
  for (const char* kind : {"dram", "gpu"}) {
    SCOPED_TRACE(kind);
    Config config = chain();
    config.tier("near").kind = kind;
    slow_link(config.tier("near"), kind == std::string("gpu"));
    config.cache.name = "lru";
    config.clock = "model";
    config.machine = machine;
    History first, second;
    run(config, first);
    run(config, second);
    expect_the_same_bits(first.logits, expected.logits);
    EXPECT_EQ(first.slots, second.slots);
  }
  std::filesystem::remove(machine);
}

TEST_F(Tiers, TheTightestSaysHowLongChunksAre) {
  Config config = base();
  config.context = 64;
  config.ubatch = 64;
  config.tier("near").kind = "dram";
  RuntimeOptions options;
  options.fit = options.quiet = true;
  EXPECT_EQ(plan_run(config, options)->memory.model.max_rows, 64u);
  config.tier("near").capacity = "1";
  const auto tight = plan_run(config, options);
  EXPECT_EQ(tight->memory.model.max_rows, 1u);
  EXPECT_TRUE(tight->memory.tiers[1].raised_to_least);
  EXPECT_FALSE(tight->memory.tiers[0].raised_to_least);
  // A tier that does not compute has neither activations nor a KV cache, but may hold neurons.
  config.tier("near").compute = false;
  const auto keeps = plan_run(config, options);
  EXPECT_EQ(keeps->memory.model.max_rows, 64u);
  EXPECT_EQ(keeps->memory.tiers[1].kv + keeps->memory.tiers[1].activations + keeps->memory.tiers[1].tensors,
            0u);
  options.fit = false;
  EXPECT_THAT(plan_run(config, options).error().line(), HasSubstr("tiers.near.capacity: 1 B is too little"));
}

}  // namespace
}  // namespace tierd
