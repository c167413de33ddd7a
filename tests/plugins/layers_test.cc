// M2Cache's cache of DRAM: which layers are fixed, and which are loaded when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plugins/table.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Cache = Plugged<tierd_cache_1>;

constexpr uint32_t kLayers = 5;
constexpr uint64_t kWhole = 4 * 100;  // of a layer, used whole by each step
constexpr uint64_t kInPart = 2 * (300 + 150);
constexpr uint64_t kHead = 6 * 100;
// Edition numbers: the embedding has none, a layer's follow each other, lower editions come after all others.
constexpr uint32_t whole_of(uint32_t layer) {
  return 2 * layer;
}
constexpr uint32_t best_of(uint32_t layer) {
  return 2 * layer + 1;
}
constexpr uint32_t lower_of(uint32_t layer) {
  return 2 * kLayers + 1 + layer;
}

// An embedding tied to the head, and layers with one site that is used whole and one of neurons with a lower
// edition.
std::vector<TestSite> model_of_two_editions() {
  std::vector<TestSite> sites = {
      {.n = 6, .slot_bytes = 100, .given = true, .shares = 2 * kLayers + 1, .layer = TIERD_NO_LAYER}};
  for (uint16_t layer = 0; layer < kLayers; ++layer) {
    sites.push_back({.n = 4, .slot_bytes = 100, .layer = layer});
    sites.push_back({.n = 2, .slot_bytes = 300, .axis = TIERD_AXIS_NEURON, .layer = layer, .lower = {150}});
  }
  sites.push_back({.n = 6, .slot_bytes = 100, .layer = TIERD_NO_LAYER});
  return sites;
}

class LayersCache {
 public:
  // The cache of DRAM under a GPU of `gpu` bytes; nothing: DRAM computes.
  explicit LayersCache(const std::vector<Setting>& settings, std::optional<uint64_t> gpu = 0,
                       uint64_t staging = 0)
      : cache("cache", "layers", sites_, settings, {}, {}, 1,
              gpu ? TestMachine{{{"dram", 0, 0, false, staging}, {"gpu", 1, *gpu}}, 1}
                  : TestMachine{{{"dram", 0, 0, true, staging}}, 1}) {}

  std::vector<uint32_t> share(uint64_t bytes) {
    std::vector<uint32_t> slots(3 * kLayers + 1);
    for (uint32_t e = 0; e < slots.size(); ++e) slots[e] = sites_[cache.site_of(e)].n;
    EXPECT_EQ(cache.table.share(cache.self, bytes, slots.data()), TIERD_OK);
    return slots;
  }
  // Returns the editions that the cache wishes for at this site.
  std::vector<uint32_t> ahead(uint32_t site) {
    cache.wishes.clear();
    EXPECT_EQ(cache.table.ahead(cache.self, site), TIERD_OK);
    std::vector<uint32_t> editions;
    for (const Cache::Wish& wish : cache.wishes) {
      EXPECT_EQ(wish.memory, 1u);
      EXPECT_EQ((site + wish.distance) % sites_.size(), wish.site);
      EXPECT_EQ(wish.site, cache.site_of(wish.edition));
      editions.push_back(wish.edition);
    }
    return editions;
  }
  std::vector<uint32_t> neurons_of_wish(size_t i) const { return *cache.wishes[i].neurons; }

 private:
  const std::vector<TestSite> sites_ = model_of_two_editions();

 public:
  Cache cache;
};

TEST(Layers, TheFirstLayersStay) {
  LayersCache layers({});
  auto slots = layers.share(2 * (kWhole + kInPart) + kWhole + 300);
  for (const uint32_t layer : {0u, 1u}) {
    EXPECT_EQ(slots[whole_of(layer)], 4u);
    EXPECT_EQ(slots[best_of(layer)], 2u);
    EXPECT_EQ(slots[lower_of(layer)], 2u);
  }
  EXPECT_EQ(slots[whole_of(2)], 4u);
  EXPECT_EQ(slots[best_of(2)], 1u) << "the last one in part";
  EXPECT_EQ(slots[lower_of(2)], 0u);
  EXPECT_EQ(slots[whole_of(3)] + slots[best_of(3)] + slots[lower_of(3)], 0u);
  EXPECT_EQ(layers.cache.metrics.at("layers.fixed"), 2);
}

TEST(Layers, AsManyStayAsAreAskedFor) {
  LayersCache layers({integer("fixed", 1)});
  const auto slots = layers.share(1 << 20);
  EXPECT_EQ(slots[best_of(0)], 2u);
  EXPECT_EQ(slots[best_of(1)] + slots[whole_of(1)], 0u);
  EXPECT_EQ(slots[2 * kLayers], 6u) << "the head belongs to no layer";
  EXPECT_EQ(layers.cache.metrics.at("layers.fixed"), 1);
}

TEST(Layers, WhatIsUsedWholeIsLeftToAMemoryAboveWithRoomForIt) {
  LayersCache layers({}, kLayers * kWhole + kHead);
  const auto slots = layers.share(2 * kInPart);
  EXPECT_EQ(slots[whole_of(0)], 0u);
  EXPECT_EQ(slots[best_of(1)], 2u);
  EXPECT_EQ(slots[lower_of(1)], 2u);
  EXPECT_EQ(slots[2 * kLayers], 0u);
  EXPECT_THAT(layers.ahead(0), ElementsAre(best_of(2), lower_of(2), best_of(3), lower_of(3)));

  LayersCache small({}, kLayers * kWhole + kHead - 1);
  EXPECT_EQ(small.share(1 << 20)[whole_of(0)], 4u);
}

TEST(Layers, TheNextLayersThatDoNotStayAreLoadedOnce) {
  LayersCache layers({integer("fixed", 2), integer("distance", 2)}, kLayers * kWhole + kHead);
  layers.share(1 << 20);
  EXPECT_THAT(layers.ahead(0), ElementsAre(best_of(2), lower_of(2), best_of(3), lower_of(3)));
  EXPECT_THAT(layers.neurons_of_wish(0), ElementsAre(0, 1));
  for (uint32_t site = 1; site < 5; ++site) EXPECT_THAT(layers.ahead(site), IsEmpty()) << "layers that stay";
  EXPECT_THAT(layers.ahead(5), ElementsAre(best_of(4), lower_of(4)));
  EXPECT_THAT(layers.ahead(6), IsEmpty()) << "the same layer";
  EXPECT_THAT(layers.ahead(7), ElementsAre(best_of(2), lower_of(2))) << "of the next step";
  EXPECT_THAT(layers.ahead(9), ElementsAre(best_of(3), lower_of(3)));
  EXPECT_THAT(layers.ahead(11), IsEmpty());
  EXPECT_THAT(layers.ahead(0), IsEmpty()) << "both are on their way";
  // Loads in flight may have been given up before another text.
  ASSERT_EQ(layers.cache.table.begin_sequence(layers.cache.self, 3), TIERD_OK);
  EXPECT_THAT(layers.ahead(1), ElementsAre(best_of(2), lower_of(2), best_of(3), lower_of(3)));
}

TEST(Layers, TheDistanceIsWhatStagingHolds) {
  const auto distance = [](uint64_t staging) {
    LayersCache layers({integer("fixed", 0)}, kLayers * kWhole + kHead, staging);
    layers.share(1 << 20);
    return layers.cache.metrics.at("layers.distance");
  };
  EXPECT_EQ(distance(0), 2) << "the paper's least";
  EXPECT_EQ(distance(3 * kInPart), 3);
  EXPECT_EQ(distance(4 * kInPart - 1), 3);
}

TEST(Layers, WhatIsHeldAboveMayStayOut) {
  LayersCache layers({integer("fixed", 0), integer("distance", 1), {"skip_held", true, "test"}},
                     kLayers * kWhole + kHead);
  layers.cache.holders = [](uint32_t edition, uint32_t neuron) -> uint64_t {
    return edition == best_of(1) && neuron == 0 ? 1u << 2 : edition == best_of(1) ? 1u << 1 : 0u;
  };
  layers.share(0);
  EXPECT_THAT(layers.ahead(1), ElementsAre(best_of(1), lower_of(1)));
  EXPECT_THAT(layers.neurons_of_wish(0), ElementsAre(1)) << "the GPU has the other one";
  EXPECT_THAT(layers.neurons_of_wish(1), ElementsAre(0, 1));
}

// If units compute from the memory, no other memory keeps the weights that are used whole.
TEST(Layers, AMemoryThatIsComputedFromLoadsAllOfALayer) {
  LayersCache layers({integer("distance", 1)}, std::nullopt);
  layers.share(kWhole + kInPart);
  EXPECT_THAT(layers.ahead(0), ElementsAre(whole_of(1), best_of(1), lower_of(1)));
  EXPECT_THAT(layers.ahead(9), SizeIs(1)) << "the head";
}

}  // namespace
}  // namespace tierd
