// Strategies through the whole stack: a faulty one fails only its request, and swapping a strategy between
// two steps changes no token.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/golden_model.h"

namespace tierd {
namespace {

using testing::HasSubstr;

constexpr uint32_t kPrompt = 6;

RuntimeOptions quiet() {
  RuntimeOptions options;
  options.quiet = true;
  options.fit = true;
  options.logit_rows = kPrompt;
  return options;
}

class Plugins : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = use_test_cache();
    tokens_ = read_golden(kModel).tokens;
    auto logits = run_all_logits(golden_config(kModel), tokens_, kPrompt);
    ASSERT_TRUE(logits.ok()) << logits.error().line();
    expected_ = std::move(*logits);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  static Config config(const std::string& cache) {
    Config config = golden_config(kModel);
    config.tier("dram").capacity = "60%";
    config.plugin_path = TIERD_BAD_PLUGIN_DIR;
    config.plugin_deadline_ms = 100;
    config.cache.name = cache;
    return config;
  }
  // Feeds all tokens, the first ones as a batch.
  static Status run(Runtime& runtime, std::vector<float>& logits) {
    TIERD_TRY(feed(runtime.engine(), tokens_, 0, kPrompt, logits));
    for (uint32_t i = kPrompt; i < tokens_.size(); ++i)
      TIERD_TRY(feed(runtime.engine(), tokens_, i, 1, logits));
    return {};
  }
  // Expects that nothing is in flight, leased or lost.
  static void expect_nothing_lost(Runtime& runtime) {
    ASSERT_TRUE(runtime.engine().drain().ok());
    EXPECT_EQ(runtime.dispatcher().in_flight(), 0u);
    const Residency& residency = runtime.residencies().front();
    const SiteTable& sites = runtime.plan().model.sites;
    for (EditionId e = 0; e < sites.editions.size(); ++e) {
      for (uint32_t i = 0; i < sites.editions[e].n; ++i) {
        EXPECT_FALSE(residency.leased(e, i) || residency.pinned(e, i))
            << sites[sites.editions[e].owner].name << " neuron " << i;
      }
      EXPECT_EQ(residency.free_slots(e) + residency.valid_count(e), residency.max_slots(e));
    }
  }

  static constexpr const char* kModel = "llama2";
  static inline std::string folder_;
  static inline std::vector<uint32_t> tokens_;
  static inline std::vector<float> expected_;
};

struct Faulty {
  const char* name;
  const char* line;
};

TEST_F(Plugins, AFaultyOneFailsItsRequestAndTheNextIsRight) {
  const Faulty all[] = {
      {"throws", "admit: threw an exception"},
      {"slow", "ms of the processor, at most 100 ms were allowed"},
      {"sleeps", "ms, at most 1000 ms were allowed"},
      {"fails", "admit: returned -4: lost my way\\x0aand more"},
      {"too_many_victims", "admit: "},
      {"false_victim", "cannot be evicted"},
      {"no_victims", "admit: keeps more neurons than there are free slots and victims"},
      {"false_verdict", "admit: verdict 77"},
      {"refuses", "admit: refused a neuron of a demand"},
      {"destroy_throws", "admit: returned -4"},
  };
  for (const Faulty& faulty : all) {
    for (const char* fallback : {"", "lru"}) {
      SCOPED_TRACE(std::string(faulty.name) + " " + fallback);
      Config config = Plugins::config(faulty.name);
      config.cache.fallback = fallback;
      auto runtime = make_runtime(config, quiet());
      ASSERT_TRUE(runtime.ok()) << runtime.error().line();
      ASSERT_TRUE((*runtime)->load().ok());
      std::vector<float> logits;
      const Status first = feed((*runtime)->engine(), tokens_, 0, 1, logits);
      ASSERT_FALSE(first.ok());
      EXPECT_EQ(first.code(), Code::plugin_fault);
      const std::string line = first.error().line();
      EXPECT_EQ(line.find("cache '" + std::string(faulty.name) + "': "), 0u) << line;
      EXPECT_THAT(line, HasSubstr(faulty.line));
      EXPECT_EQ(line.find('\n'), std::string::npos);

      logits.clear();
      const Status second = run(**runtime, logits);
      if (*fallback == '\0') {
        ASSERT_FALSE(second.ok());
        EXPECT_THAT(second.error().line(), HasSubstr("is quarantined"));
        EXPECT_THAT(second.error().line(), HasSubstr("), and 'cache.fallback' is empty"));
      } else {
        ASSERT_TRUE(second.ok()) << second.error().line();
        expect_the_same_bits(logits, expected_);
      }
      expect_nothing_lost(**runtime);
    }
  }
}

TEST_F(Plugins, ANapIsNoFault) {
  auto runtime = make_runtime(config("naps"), quiet());
  ASSERT_TRUE(runtime.ok()) << runtime.error().line();
  ASSERT_TRUE((*runtime)->load().ok());
  std::vector<float> logits;
  EXPECT_TRUE(feed((*runtime)->engine(), tokens_, 0, 1, logits).ok());
}

TEST_F(Plugins, AQuarantinedOneIsMadeAnew) {
  auto runtime = make_runtime(config("fails_once"), quiet());
  ASSERT_TRUE(runtime.ok()) << runtime.error().line();
  ASSERT_TRUE((*runtime)->load().ok());
  EXPECT_TRUE((*runtime)->quarantine().ok());
  std::vector<float> logits;
  EXPECT_FALSE(feed((*runtime)->engine(), tokens_, 0, 1, logits).ok());
  EXPECT_THAT((*runtime)->quarantine().error().line(), HasSubstr("cache 'fails_once': is quarantined"));
  ASSERT_TRUE((*runtime)->make_anew().ok());
  EXPECT_TRUE((*runtime)->quarantine().ok());
  logits.clear();
  const Status second = run(**runtime, logits);
  ASSERT_TRUE(second.ok()) << second.error().line();
  expect_the_same_bits(logits, expected_);
}

TEST_F(Plugins, OneThatCannotBeMadeIsRefusedAtTheStart) {
  const Faulty all[] = {
      {"wrong_major", "was built for version 99."},
      {"offers_nothing", "does not offer tierd.cache/1"},
      {"short_table", "has 16 B"},
      {"no_admit", "has no function 'admit'"},
      {"create_fails", "could not be created: the moon is full"},
      {"create_nothing", "could not be created: create returned no instance"},
      {"create_throws", "could not be created: create threw an exception: not today"},
      {"create_asks", "could not be created: create returned -1"},
      {"share_too_much", "share: "},
      {"share_throws", "share: threw an exception: no such thing as a share"},
  };
  for (const Faulty& faulty : all) {
    SCOPED_TRACE(faulty.name);
    const auto runtime = make_runtime(config(faulty.name), quiet());
    ASSERT_FALSE(runtime.ok());
    // A plugin that gives a reason with TIERD_E_INVALID refuses its arguments.
    EXPECT_EQ(runtime.code(),
              std::string(faulty.name) == "create_fails" ? Code::invalid_argument : Code::plugin_fault);
    EXPECT_THAT(runtime.error().line(), HasSubstr(faulty.name));
    EXPECT_THAT(runtime.error().line(), HasSubstr(faulty.line));
  }
}

TEST_F(Plugins, AnAgentThatCannotServeIsRefusedAtTheStart) {
  const auto refused = [](const char* flash, const char* dram) {
    Config config = Plugins::config("sound");
    config.tier("flash").kind = flash;
    config.tier("dram").kind = dram;
    const auto runtime = make_runtime(config, quiet());
    EXPECT_FALSE(runtime.ok());
    return runtime.ok() ? "" : runtime.error().line();
  };
  EXPECT_THAT(refused("other_build", "dram"), HasSubstr("agent-other_build.so: was built for [tierd 0.0.9"));
  EXPECT_THAT(refused("wrong_name", "dram"), HasSubstr("its name is agent 'another'"));
  EXPECT_THAT(refused("no_such", "dram"),
              testing::StartsWith("tiers.flash.kind: there is no agent 'no_such'"));
  EXPECT_THAT(
      refused("reads_and_throws", "dram"),
      HasSubstr("agent-reads_and_throws.so: could not be created: make threw an exception: not today"));
  EXPECT_EQ(refused("dram", "dram"),
            "tiers: no tier's agent serves 'read' ('dram' of tiers.flash, 'dram' of tiers.dram); set the "
            "agent of one tier to one that does, such as 'flash' (tiers.NAME.kind)");
  EXPECT_EQ(refused("flash", "flash"),
            "tiers.dram.kind: agent 'flash' serves 'read', as the agent of tiers.flash does; expected one "
            "such agent");
}

TEST_F(Plugins, AFallbackIsCheckedAtTheStart) {
  Config config = Plugins::config("sound");
  config.cache.fallback = "no_such";
  EXPECT_EQ(plan_run(config, quiet()).code(), Code::not_found);
  config.cache.fallback = "wrong_major";
  EXPECT_EQ(plan_run(config, quiet()).code(), Code::plugin_fault);
}

// Neurons that a lossy predictor leaves out count as zero, also where they are resident.
TEST_F(Plugins, ALossyPredictorGivesTheSameWhateverTheCache) {
  const auto run_with = [&](double p, const char* cache, uint32_t threads) {
    Config config = Plugins::config(cache);
    config.predictor.name = "random";
    config.predictor.settings = {{"p", p, "test"}};
    config.threads = threads;
    const auto logits = run_all_logits(config, tokens_, 1);
    EXPECT_TRUE(logits.ok()) << logits.error().line();
    return logits.ok() ? *logits : std::vector<float>();
  };
  const std::vector<float> lossy = run_with(0.6, "none", 1);
  EXPECT_NE(lossy, expected_);
  expect_the_same_bits(run_with(0.6, "lru", 1), lossy);
  expect_the_same_bits(run_with(0.6, "pinned", 2), lossy);
  expect_the_same_bits(run_with(1, "lfu", 1), expected_);
}

TEST_F(Plugins, CachesTakeEachOthersPlaceDuringAGeneration) {
  for (const bool prefetch : {true, false}) {
    Config config = Plugins::config("lru");
    config.prefetch = prefetch;
    auto made = make_runtime(config, quiet());
    ASSERT_TRUE(made.ok()) << made.error().line();
    Runtime& runtime = **made;
    ASSERT_TRUE(runtime.load().ok());
    const char* const caches[] = {"lfu", "static", "none", "pinned", "lru", "static", "lfu"};
    std::vector<float> logits;
    ASSERT_TRUE(feed(runtime.engine(), tokens_, 0, kPrompt, logits).ok());
    for (uint32_t i = kPrompt; i < tokens_.size(); ++i) {
      if (i % 2 == 0) {
        const std::string next = caches[i / 2 % std::size(caches)];
        const Status swapped = runtime.swap("cache", StrategyConfig{next});
        ASSERT_TRUE(swapped.ok()) << swapped.error().line();
        EXPECT_EQ(runtime.strategies().instance("cache").choice().plugin->name, next);
        expect_nothing_lost(runtime);
      }
      ASSERT_TRUE(feed(runtime.engine(), tokens_, i, 1, logits).ok());
    }
    expect_the_same_bits(logits, expected_);
    expect_nothing_lost(runtime);
    // If the new strategy cannot be created, the old one stays.
    EXPECT_FALSE(runtime.swap("cache", StrategyConfig{"create_fails"}).ok());
    EXPECT_FALSE(runtime.swap("cache", StrategyConfig{"no_such"}).ok());
    logits.clear();
    EXPECT_TRUE(run(runtime, logits).ok());
    expect_the_same_bits(logits, expected_);
  }
}

}  // namespace
}  // namespace tierd
