// Experts that are cut into channels: sites that a step passes through only when the router has chosen them,
// sparse inside.
#include <gtest/gtest.h>

#include <map>

#include "core/store/writer.h"
#include "tests/e2e/golden_model.h"
#include "tests/e2e/mixture.h"
#include "tests/store/temp_folder.h"

namespace tierd {
namespace {

struct Ran {
  std::vector<float> logits;
  std::vector<Site> sites;
  std::vector<SiteUse> use;  // [sites]
  uint64_t read_bytes = 0;

  // Of all sites of experts.
  SiteUse experts() const {
    SiteUse all;
    for (SiteId s = 0; s < sites.size(); ++s) {
      if (sites[s].parent == kNoSiteId) continue;
      all.foreseen += use[s].foreseen;
      all.wanted += use[s].wanted;
      all.right += use[s].right;
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

class ExpertChannels : public testing::TestWithParam<std::string> {
 protected:
  ExpertChannels() {
    const auto source = SyntheticSource::make(mixture(GetParam()), Encoding::f16, 7);
    EXPECT_TRUE(source.ok()) << source.error().line();
    const Status written =
        write_store(**source, store(), {.layout = Layout::channel_group, .layer_group = 2, .quiet = true});
    EXPECT_TRUE(written.ok()) << written.error().line();
    write_routers(**source, routers());
    Random random(5);
    for (uint32_t i = 0; i < 40; ++i) tokens_.push_back(random.below(300));
  }
  std::string store() const { return folder_.path() + "/store"; }
  std::string routers() const { return folder_.path() + "/routers.safetensors"; }

  Config config(const std::string& cache, const std::string& capacity) const {
    Config config;
    config.model = store();
    config.context = 48;
    config.threads = 1;
    config.bind = false;
    config.cache.name = cache;
    config.dram_capacity = capacity;
    return config;
  }
  Config sparse(double sparsity, const std::string& cache, const std::string& capacity) const {
    Config config = this->config(cache, capacity);
    config.predictor.name = "top-k";
    config.predictor.settings.push_back({"sparsity", sparsity, "test"});
    return config;
  }

  // `first` tokens as a prompt, then one a step, `count` in all.
  Ran run(const Config& config, uint32_t first, size_t count) const {
    RuntimeOptions options;
    options.quiet = true;
    options.logit_rows = std::max(first, 1u);
    Ran ran;
    auto runtime = make_runtime(config, options);
    EXPECT_TRUE(runtime.ok()) << runtime.error().line();
    if (!runtime.ok()) return ran;
    EXPECT_TRUE((*runtime)->load().ok());
    Engine& engine = (*runtime)->engine();
    for (uint32_t at = 0; at < count;) {
      const uint32_t n = at == 0 ? std::min(first, engine.max_rows()) : 1;
      const Status fed = feed(engine, tokens_, at, n, ran.logits);
      EXPECT_TRUE(fed.ok()) << fed.error().line();
      at += n;
    }
    EXPECT_TRUE(engine.drain().ok());
    ran.sites = (*runtime)->plan().model.sites;
    ran.use = (*runtime)->scheduler().use();
    ran.read_bytes = (*runtime)->scheduler().counters().read_bytes;
    return ran;
  }

  TempFolder folder_;
  std::vector<uint32_t> tokens_;
};

// Nothing is left out: the bits of the resident run, whichever channels of whichever experts stay.
TEST_P(ExpertChannels, StreamedWholeTheySayTheSame) {
  for (const uint32_t prompt : {1u, 9u}) {
    const Ran resident = run(config("pinned", "all"), prompt, tokens_.size());
    EXPECT_EQ(resident.experts().misses, 0u);
    for (const char* cache : {"context-lfu", "lru", "lfu", "none"}) {
      SCOPED_TRACE(std::string(cache) + ", a prompt of " + std::to_string(prompt));
      const Ran ran = run(sparse(0, cache, "25%"), prompt, tokens_.size());
      expect_the_same_bits(ran.logits, resident.logits);
      EXPECT_GT(ran.experts().misses, 0u);
      expect_the_same_bits(run(config(cache, "25%"), prompt, tokens_.size()).logits, resident.logits);
    }
    Config threads = sparse(0, "context-lfu", "25%");
    threads.threads = 3;
    threads.flash.thread = threads.dram.thread = "own";
    Config shuffled = sparse(0, "context-lfu", "30%");
    shuffled.shuffle = "3";
    for (const Config& changed : {threads, shuffled})
      expect_the_same_bits(run(changed, prompt, tokens_.size()).logits, resident.logits);
  }
}

// Several units each sum channels of their own: other bits, but the same whatever stays where.
TEST_P(ExpertChannels, SeveralUnitsShareThem) {
  const Ran one = run(config("pinned", "all"), 5, tokens_.size());
  Config shared = config("pinned", "all");
  shared.dram_units = 2;
  shared.balancer.name = "round-robin";
  const Ran resident = run(shared, 5, tokens_.size());
  ASSERT_EQ(resident.logits.size(), one.logits.size());
  for (size_t i = 0; i < one.logits.size(); ++i) ASSERT_NEAR(resident.logits[i], one.logits[i], 1e-3);
  shared.cache.name = "lru";
  shared.dram_capacity = "70%";
  expect_the_same_bits(run(shared, 5, tokens_.size()).logits, resident.logits);
}

TEST_P(ExpertChannels, AreTouchedOnlyWhenTheyAreChosen) {
  // One token: three experts a layer, both of whose operators are passed, and nobody else is asked for.
  const Ran one = run(sparse(0.5, "lru", "40%"), 1, 1);
  uint32_t chosen = 0;
  for (SiteId s = 0; s < one.sites.size(); ++s) {
    if (one.sites[s].parent == kNoSiteId) continue;
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

  // Many: each row is computed by its own experts alone.
  const Ran all = run(config("pinned", "all"), static_cast<uint32_t>(tokens_.size()), tokens_.size());
  std::map<SiteId, uint64_t> rows;  // by the layer's parent
  for (SiteId s = 0; s < all.sites.size(); ++s) {
    if (all.sites[s].op_group == static_cast<uint16_t>(OpGroup::expert_up))
      rows[all.sites[s].parent] += all.use[s].rows;
  }
  EXPECT_EQ(rows.size(), kMixtureLayers);
  for (const auto& [parent, of_layer] : rows) EXPECT_EQ(of_layer, tokens_.size() * kMixturePicks);
}

// Half of each operator's inputs are left out: fewer bytes are read, and what that loses is told.
TEST_P(ExpertChannels, SparseInsideTheyReadLess) {
  const Ran whole = run(sparse(0, "context-lfu", "25%"), 1, tokens_.size());
  Config half = sparse(0.5, "context-lfu", "25%");
  const Ran ran = run(half, 1, tokens_.size());
  EXPECT_LT(ran.read_bytes, whole.read_bytes * 3 / 4);
  EXPECT_NE(ran.logits, whole.logits);
  half.measure_every = 4;
  const Ran measured = run(half, 1, tokens_.size());
  expect_the_same_bits(measured.logits, ran.logits);
  const SiteUse experts = measured.experts();
  EXPECT_GT(experts.measured_rows, 0u);
  EXPECT_GT(experts.missed_share(), 0.01);
  EXPECT_LT(experts.missed_share(), 0.5);
  std::printf("  read %.2f of the bytes, missed mass %.3f\n",
              static_cast<double>(ran.read_bytes) / static_cast<double>(whole.read_bytes),
              experts.missed_share());
  // Whatever stays, and however many tokens are computed together.
  const Ran resident = run(sparse(0.5, "pinned", "all"), 9, tokens_.size());
  expect_the_same_bits(ran.logits, resident.logits);
}

// This layer's router says which experts come next, the next layer's router, asked early, which will come
// then.
TEST_P(ExpertChannels, RoutersReadAhead) {
  Config config = sparse(0.5, "context-lfu", "40%");
  const Ran without = run(config, 1, tokens_.size());
  EXPECT_EQ(without.experts().foreseen, 0u);
  config.predictor.tensors = routers();
  const Ran ran = run(config, 1, tokens_.size());
  expect_the_same_bits(ran.logits, without.logits);
  const SiteUse experts = ran.experts();
  EXPECT_GT(experts.staged, without.experts().staged);
  EXPECT_LT(experts.misses, without.experts().misses);
  // Of this layer's experts those after the first are foreseen to the channel.
  EXPECT_GT(experts.ahead_precision(), 0.3);
  std::printf("  foreseen with precision %.2f, recall %.2f; %.2f of the misses are left\n",
              experts.ahead_precision(), experts.ahead_recall(),
              static_cast<double>(experts.misses) / static_cast<double>(without.experts().misses));
}

INSTANTIATE_TEST_SUITE_P(Families, ExpertChannels, testing::Values("mixtral", "qwen3_moe", "olmoe"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tierd
