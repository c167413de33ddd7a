// Experts that are cut into channels: a step passes their sites only if the router has chosen the expert, and
// each site is sparse inside.
#include <gtest/gtest.h>

#include <map>

#include "tests/e2e/streamed_mixture.h"

namespace tierd {
namespace {

struct ChannelsRun {
  std::vector<float> logits;
  std::vector<Site> sites;
  std::vector<SiteUse> use;  // [sites]
  uint64_t read_bytes = 0;

  // Returns the sums over all sites of experts.
  SiteUse experts() const {
    SiteUse all;
    for (SiteId s = 0; s < sites.size(); ++s) {
      if (!sites[s].of_expert()) continue;
      all.hits += use[s].hits;
      all.staged += use[s].staged;
      all.misses += use[s].misses;
      all.measured_rows += use[s].measured_rows;
      all.mass += use[s].mass;
      all.missed_mass += use[s].missed_mass;
    }
    return all;
  }
};

class ExpertChannels : public StreamedMixture {
 protected:
  ExpertChannels()
      : StreamedMixture(Encoding::f16, {.layout = Layout::channel_group,
                                        .layer_group = 2,
                                        .experts = ExpertCut::channels,
                                        .quiet = true}) {}

  Config sparse(double sparsity, const std::string& cache, const std::string& capacity) const {
    Config config = this->config(cache, capacity);
    config.predictor.name = "top-k";
    config.predictor.settings.push_back({"sparsity", sparsity, "test"});
    return config;
  }

  ChannelsRun run(const Config& config, uint32_t first, size_t count) const {
    ChannelsRun ran;
    ran.logits = play(config, first, count, [&](Runtime& runtime) {
      ran.sites = runtime.plan().model.sites.all;
      ran.use = runtime.scheduler().use();
      ran.read_bytes = runtime.scheduler().counters().read_bytes;
    });
    return ran;
  }
};

// With nothing left out, the bits equal those of the resident run, whichever channels stay resident.
TEST_P(ExpertChannels, StreamedWholeTheySayTheSame) {
  for (const uint32_t prompt : {1u, 9u}) {
    const ChannelsRun resident = run(config("pinned", "all"), prompt, tokens_.size());
    EXPECT_EQ(resident.experts().misses, 0u);
    for (const char* cache : {"context-lfu", "lru", "pinned", "none"}) {
      SCOPED_TRACE(std::string(cache) + ", a prompt of " + std::to_string(prompt));
      const ChannelsRun ran = run(sparse(0, cache, "25%"), prompt, tokens_.size());
      expect_the_same_bits(ran.logits, resident.logits);
      EXPECT_GT(ran.experts().misses, 0u);
      expect_the_same_bits(run(config(cache, "25%"), prompt, tokens_.size()).logits, resident.logits);
    }
  }
}

// With several units, each sums its own channels: other bits than one unit's, whatever is resident.
TEST_P(ExpertChannels, SeveralUnitsShareThem) {
  const ChannelsRun one = run(config("pinned", "all"), 5, tokens_.size());
  Config shared = config("pinned", "all");
  shared.tier("dram").count = 2;
  shared.balancer.name = "round-robin";
  const ChannelsRun resident = run(shared, 5, tokens_.size());
  ASSERT_EQ(resident.logits.size(), one.logits.size());
  for (size_t i = 0; i < one.logits.size(); ++i) ASSERT_NEAR(resident.logits[i], one.logits[i], 1e-3);
  shared.cache.name = "lru";
  shared.tier("dram").capacity = "70%";
  expect_the_same_bits(run(shared, 5, tokens_.size()).logits, resident.logits);
}

TEST_P(ExpertChannels, ArePassedOnlyWhenTheyAreChosen) {
  // One token uses kMixturePicks experts a layer: both operators of each are passed, and no other expert is.
  const ChannelsRun one = run(sparse(0.5, "lru", "40%"), 1, 1);
  uint64_t chosen = 0;
  for (SiteId s = 0; s < one.sites.size(); ++s) {
    if (!one.sites[s].of_expert()) continue;
    const SiteUse& use = one.use[s];
    EXPECT_LE(use.rows, 1u);
    EXPECT_EQ(use.used != 0, use.rows != 0);
    EXPECT_EQ(use.hits + use.staged + use.misses, use.used);
    if (one.sites[s].op_group != static_cast<uint16_t>(OpGroup::expert_up)) continue;
    chosen += use.rows;
    EXPECT_EQ(one.use[s + 1].rows, use.rows) << "up, then down";
    EXPECT_EQ(use.used, use.rows * 32) << "half of the channels";
  }
  EXPECT_EQ(chosen, kMixtureLayers * kMixturePicks);

  // With many tokens, each row is computed by its own experts alone.
  const ChannelsRun all = run(config("pinned", "all"), static_cast<uint32_t>(tokens_.size()), tokens_.size());
  std::map<uint16_t, uint64_t> rows;  // by layer
  for (SiteId s = 0; s < all.sites.size(); ++s) {
    if (all.sites[s].op_group == static_cast<uint16_t>(OpGroup::expert_up))
      rows[all.sites[s].layer] += all.use[s].rows;
  }
  EXPECT_EQ(rows.size(), kMixtureLayers);
  for (const auto& [layer, of_layer] : rows) EXPECT_EQ(of_layer, tokens_.size() * kMixturePicks) << layer;
}

// Leaving out half of each operator's inputs reads fewer bytes, and measuring reports the loss.
TEST_P(ExpertChannels, SparseInsideTheyReadLess) {
  const ChannelsRun whole = run(sparse(0, "context-lfu", "25%"), 1, tokens_.size());
  Config half = sparse(0.5, "context-lfu", "25%");
  const ChannelsRun ran = run(half, 1, tokens_.size());
  EXPECT_LT(ran.read_bytes, whole.read_bytes * 3 / 4);
  EXPECT_NE(ran.logits, whole.logits);
  half.measure_every = 4;
  const ChannelsRun measured = run(half, 1, tokens_.size());
  expect_the_same_bits(measured.logits, ran.logits);
  const SiteUse experts = measured.experts();
  EXPECT_GT(experts.measured_rows, 0u);
  EXPECT_GT(experts.missed_share(), 0.01);
  EXPECT_LT(experts.missed_share(), 0.5);
  // The result depends neither on residency nor on the number of tokens in a step.
  const ChannelsRun resident = run(sparse(0.5, "pinned", "all"), 9, tokens_.size());
  expect_the_same_bits(ran.logits, resident.logits);
}

// The mask prefers resident channels of the chosen experts. Missing channels are prefetched for operators
// that are known to follow: an expert's down while its up is computed, and attention's from any earlier site.
TEST_P(ExpertChannels, TheMaskUsesWhatIsResidentOfThem) {
  const ChannelsRun largest = run(sparse(0.5, "pinned", "40%"), 1, tokens_.size());
  Config masked = sparse(0.5, "pinned", "40%");
  for (const auto& [key, value] : {std::pair("mask", "cache-aware"), std::pair("ahead", "none")})
    masked.predictor.settings.push_back({key, std::string(value), "test"});
  masked.predictor.settings.push_back({"missing_ahead", 0.5, "test"});
  const ChannelsRun ran = run(masked, 1, tokens_.size());
  EXPECT_GT(ran.experts().hits, largest.experts().hits);
  EXPECT_LT(ran.experts().misses, largest.experts().misses);
  EXPECT_GT(ran.experts().staged, 0u);
}

INSTANTIATE_TEST_SUITE_P(Families, ExpertChannels, testing::Values("mixtral", "qwen3_moe", "olmoe"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tierd
