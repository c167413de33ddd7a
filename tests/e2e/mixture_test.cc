// Mixtures of experts that do not fit their memory give the bits of the resident run, whichever experts stay
// resident.
#include <gtest/gtest.h>

#include <map>

#include "tests/e2e/streamed_mixture.h"

namespace tierd {
namespace {

struct ExpertsRun {
  std::vector<float> logits;
  SiteUse experts;  // of all layers
};

class Mixture : public StreamedMixture {
 protected:
  Mixture() : StreamedMixture(Encoding::q8_0, {.quiet = true}) { write_routers(*source_, routers()); }
  std::string routers() const { return path("routers.safetensors"); }

  // Writes a file in which each layer has hot experts of its own.
  std::string hot_set() const {
    std::vector<SafetensorsEntry> entries;
    for (const char* layer : {"0", "1", "2"})
      entries.push_back({std::string("layers.") + layer + ".experts", "F32", {24}});
    auto writer = SafetensorsWriter::create(path("heat.safetensors"), std::move(entries));
    EXPECT_TRUE(writer.ok());
    for (uint32_t layer = 0; layer < 3; ++layer) {
      std::vector<float> heat(24);
      for (uint32_t e = 0; e < 24; ++e) heat[e] = static_cast<float>((e * 7 + layer) % 24);
      EXPECT_TRUE(writer->append(std::as_bytes(std::span(heat))).ok());
    }
    EXPECT_TRUE(writer->finish().ok());
    return path("heat.safetensors");
  }

  // Feeds `first` tokens as a prompt, then one token a step.
  ExpertsRun run(const Config& config, uint32_t first) const {
    ExpertsRun ran;
    ran.logits = play(config, first, tokens_.size(), [&](Runtime& runtime) {
      const ModelPlan& plan = runtime.plan().model;
      for (SiteId s = 0; s < plan.sites.size(); ++s) {
        const SiteUse& use = runtime.scheduler().use()[s];
        if (!plan.sites[s].chosen()) {
          // The reads of a prompt do not displace weights that every step uses.
          if (!plan.sites[s].given() && config.cache.name != "none") {
            EXPECT_LE(use.misses, plan.sites[s].n) << plan.sites[s].name << " is used whole, and stays";
          }
          continue;
        }
        EXPECT_EQ(use.used, use.rows * 3) << "three experts a token";
        ran.experts.hits += use.hits;
        ran.experts.staged += use.staged;
        ran.experts.misses += use.misses;
        ran.experts.foreseen += use.foreseen;
        ran.experts.wanted += use.wanted;
        ran.experts.right += use.right;
      }
    });
    return ran;
  }
};

TEST_P(Mixture, StreamedAtAQuarterOfTheMemoryItSaysTheSame) {
  for (const uint32_t prompt : {1u, 9u}) {
    const ExpertsRun resident = run(config("pinned", "all"), prompt);
    EXPECT_EQ(resident.experts.misses, 0u);
    std::map<std::string, double> hit_rates;
    for (const char* cache : {"lru", "lfu", "static", "residency-window", "fifo"}) {
      SCOPED_TRACE(std::string(cache) + ", a prompt of " + std::to_string(prompt));
      Config streamed = config(cache, "25%");
      if (streamed.cache.name == "static") streamed.cache.tensors = hot_set();
      const ExpertsRun ran = run(streamed, prompt);
      expect_the_same_bits(ran.logits, resident.logits);
      EXPECT_GT(ran.experts.misses, 0u);
      EXPECT_GT(ran.experts.hits, 0u);
      EXPECT_EQ(ran.experts.hits + ran.experts.staged + ran.experts.misses,
                resident.experts.hits + resident.experts.staged);
      hit_rates[cache] = static_cast<double>(ran.experts.hits) /
                         static_cast<double>(ran.experts.hits + ran.experts.staged + ran.experts.misses);
    }
    for (const auto& [cache, rate] : hit_rates)
      std::printf("  %s: %.1f %% of the experts were there\n", cache.c_str(), 100 * rate);
  }
}

// Varies the cache, the number of threads and the order of agents and reads.
TEST_P(Mixture, WhateverIsReadWhenItSaysTheSame) {
  const ExpertsRun resident = run(config("pinned", "all"), 5);
  Config none = config("none", "25%");
  Config threads = config("lru", "25%");
  threads.threads = 3;
  threads.tier("flash").thread = threads.tier("dram").thread = "own";
  Config shuffled = config("lfu", "30%");
  shuffled.shuffle = "3";
  for (const Config& changed : {none, threads, shuffled})
    expect_the_same_bits(run(changed, 5).logits, resident.logits);
}

// Predicting with the next layer's router: a wrong prediction costs reads and changes no bit.
TEST_P(Mixture, TheNextRouterReadsAhead) {
  const ExpertsRun resident = run(config("pinned", "all"), 1);
  Config ahead = config("lru", "30%");
  ahead.predictor.name = "router";
  ahead.predictor.tensors = routers();
  ahead.predictor.settings.push_back({"least_precision", 0.0, "test"});
  const ExpertsRun ran = run(ahead, 1);
  expect_the_same_bits(ran.logits, resident.logits);
  EXPECT_GT(ran.experts.foreseen, 0u);
  EXPECT_GT(ran.experts.right, 0u);
  EXPECT_EQ(ran.experts.foreseen, ran.experts.wanted) << "as many as the router chooses";
  // The model has the routers already, so no separate file is needed.
  Config of_model = ahead;
  of_model.predictor.tensors = "model";
  const ExpertsRun the_same = run(of_model, 1);
  expect_the_same_bits(the_same.logits, resident.logits);
  EXPECT_EQ(the_same.experts.foreseen, ran.experts.foreseen);
  EXPECT_EQ(the_same.experts.right, ran.experts.right);
  Config more = ahead;
  more.predictor.settings.push_back({"more", int64_t{3}, "test"});
  const ExpertsRun with_more = run(more, 1);
  expect_the_same_bits(with_more.logits, resident.logits);
  EXPECT_EQ(with_more.experts.foreseen, 2 * ran.experts.foreseen);
  EXPECT_GE(with_more.experts.right, ran.experts.right);
  // Where the precision is too low, prefetching stops after the first predictions.
  Config sure = of_model;
  sure.predictor.settings = {{"least_precision", 1.0, "test"}};
  const ExpertsRun surely = run(sure, 1);
  expect_the_same_bits(surely.logits, resident.logits);
  EXPECT_GT(surely.experts.foreseen, 0u);
  EXPECT_LT(surely.experts.foreseen, ran.experts.foreseen);
  std::printf("  precision %.2f, recall %.2f; with three more %.2f, %.2f\n", ran.experts.ahead_precision(),
              ran.experts.ahead_recall(), with_more.experts.ahead_precision(),
              with_more.experts.ahead_recall());
}

INSTANTIATE_TEST_SUITE_P(Families, Mixture, testing::Values("mixtral", "qwen3_moe", "olmoe"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tierd
