// The layer map of each memory's instance: the layers it keeps, and its wishes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plugins/table.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using Cache = Plugged<tierd_cache_1>;

constexpr uint64_t kLayerBytes = 4 * 100 + 2 * 300;
constexpr uint64_t kHeadBytes = 6 * 100;
constexpr uint64_t kMuch = 1 << 20;

// An embedding, three layers of two sites, a head. Edition 0 is the embedding's unless it is tied.
std::vector<TestSite> model_of_three_layers(bool tied) {
  std::vector<TestSite> sites = {{.n = 6, .slot_bytes = 100, .given = true, .layer = TIERD_NO_LAYER}};
  for (uint16_t layer = 0; layer < 3; ++layer) {
    sites.push_back({.n = 4, .slot_bytes = 100, .layer = layer});
    sites.push_back({.n = 2, .slot_bytes = 300, .layer = layer});
  }
  sites.push_back({.n = 6, .slot_bytes = 100, .layer = TIERD_NO_LAYER});
  if (tied) sites.front().shares = 7;
  return sites;
}

// A GPU that computes, over DRAM, which does not.
TestMachine machine(uint32_t own, uint64_t gpu = 0) {
  return {{{"dram", 0, 0, false}, {"gpu", 1, gpu}}, own};
}
TestMachine alone() {
  return {{{"dram"}}, 1};
}

class MapOf {
 public:
  explicit MapOf(const TestMachine& machine, const std::vector<Setting>& settings = {}, bool tied = false)
      : sites_(model_of_three_layers(tied)),
        cache("cache", "layer-map", sites_, settings, {}, {}, 1, machine) {}

  // Returns the slots of each edition.
  std::vector<uint32_t> share(uint64_t bytes) {
    std::vector<uint32_t> slots = all();
    EXPECT_EQ(cache.table.share(cache.self, bytes, slots.data()), TIERD_OK);
    return slots;
  }
  std::vector<uint32_t> all() const {
    std::vector<uint32_t> slots;
    for (const TestSite& site : sites_) {
      if (site.shares == TIERD_NO_SITE) slots.push_back(site.n);
    }
    return slots;
  }
  uint32_t resplit() {
    uint32_t wanted = 9;
    EXPECT_EQ(cache.table.resplit(cache.self, &wanted), TIERD_OK);
    return wanted;
  }
  // Returns the sites that the cache wishes for after this one.
  std::vector<uint32_t> ahead(uint32_t site) {
    cache.wishes.clear();
    EXPECT_EQ(cache.table.ahead(cache.self, site), TIERD_OK);
    std::vector<uint32_t> sites;
    for (const Cache::Wish& wish : cache.wishes) {
      EXPECT_FALSE(wish.neurons.has_value()) << "it wishes for whole sites";
      EXPECT_EQ((site + wish.distance) % sites_.size(), wish.site);
      sites.push_back(wish.site);
    }
    return sites;
  }

 private:
  const std::vector<TestSite> sites_;

 public:
  Cache cache;
};

TEST(LayerMap, OneMemoryKeepsTheFirstLayersWhole) {
  MapOf map(alone());
  EXPECT_THAT(map.share(0), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(map.share(kLayerBytes), ElementsAre(0, 4, 2, 0, 0, 0, 0, 0));
  EXPECT_THAT(map.share(2 * kLayerBytes), ElementsAre(0, 4, 2, 4, 2, 0, 0, 0));
  EXPECT_EQ(map.cache.metrics.at("layers.dram"), 2);
  EXPECT_THAT(map.share(3 * kLayerBytes + kHeadBytes), ElementsAre(0, 4, 2, 4, 2, 4, 2, 6));
  EXPECT_THAT(map.share(kMuch), map.all());
}

// The embedding gets rows from bytes that are too few for another layer or for the head.
TEST(LayerMap, TheEmbeddingHasWhatLayersLeave) {
  MapOf map(alone());
  EXPECT_THAT(map.share(kLayerBytes - 1), ElementsAre(6, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(map.share(kLayerBytes + 399), ElementsAre(3, 4, 2, 0, 0, 0, 0, 0));
  EXPECT_THAT(map.share(3 * kLayerBytes + kHeadBytes + 200), ElementsAre(2, 4, 2, 4, 2, 4, 2, 6));
  MapOf tied(alone(), {}, true);
  EXPECT_THAT(tied.share(3 * kLayerBytes - 1), ElementsAre(4, 2, 4, 2, 0, 0, 0)) << "it is the head";
  EXPECT_THAT(tied.share(3 * kLayerBytes + kHeadBytes), tied.all());
}

TEST(LayerMap, AMemoryBelowKeepsTheLayersThatFollow) {
  MapOf gpu(machine(2));
  EXPECT_THAT(gpu.share(kLayerBytes + 199), ElementsAre(1, 4, 2, 0, 0, 0, 0, 0));
  MapOf dram(machine(1, kLayerBytes + 199));
  EXPECT_THAT(dram.share(kLayerBytes), ElementsAre(0, 0, 0, 4, 2, 0, 0, 0));
  EXPECT_EQ(dram.cache.metrics.at("layers.gpu"), 1);
  EXPECT_EQ(dram.cache.metrics.at("layers.dram"), 1);
  EXPECT_THAT(dram.share(kMuch), ElementsAre(5, 0, 0, 4, 2, 4, 2, 6));
  dram.cache.set_bytes(2, kMuch);
  EXPECT_THAT(dram.share(kMuch), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
  dram.cache.set_bytes(2, 0);
  EXPECT_THAT(dram.share(kMuch), dram.all());
}

TEST(LayerMap, TheMapMayBeGiven) {
  const std::vector<Setting> given = {{"layers", std::string("gpu=1, dram=1"), "test"}};
  MapOf gpu(machine(2), given);
  EXPECT_THAT(gpu.share(kMuch), ElementsAre(6, 4, 2, 0, 0, 0, 0, 0));
  EXPECT_THAT(gpu.share(kLayerBytes - 1), ElementsAre(6, 0, 0, 0, 0, 0, 0, 0)) << "less, where less fits";
  MapOf dram(machine(1, kMuch), given);
  EXPECT_THAT(dram.share(kMuch), ElementsAre(0, 0, 0, 4, 2, 0, 0, 0));
  MapOf none(machine(2), {{"layers", std::string("gpu=0"), "test"}});
  EXPECT_THAT(none.share(kMuch), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
  MapOf all(machine(1, kMuch), {{"layers", std::string("gpu=0"), "test"}});
  EXPECT_THAT(all.share(kMuch), all.all());
  MapOf three(alone(), {{"layers", std::string("dram=3"), "test"}});
  EXPECT_THAT(three.share(kMuch), three.all()) << "the head is no layer";
}

TEST(LayerMap, AMapThatMeansNothingIsRefused) {
  const StrategyChoice sound = choose("cache", "layer-map", {});
  for (const auto& [text, why] :
       {std::pair("npu=4", "'npu' is not a tier with a memory"),
        std::pair("gpu", "'gpu' is not a number of layers of a tier"),
        std::pair("gpu=-1", "is not a number of layers of a tier; expected one such as gpu=6"),
        std::pair("gpu=all", "'gpu=all' is not a number of layers of a tier; expected one such as gpu=6"),
        std::pair("gpu=1,,dram=1", "'' is not a number"), std::pair("=3", "'=3' is not a number"),
        std::pair("gpu=123456", "'gpu=123456' is not a number")}) {
    SiteTable sites;
    PluginWorld::Machine machine;
    machine.memory = 1;
    machine.topology.memory(1).name = "gpu";
    const PluginWorld world(sites, 1, nullptr, machine);
    const auto made = StrategyInstance::create(
        choose("cache", "layer-map", {{"layers", std::string(text), "test"}}), world);
    ASSERT_FALSE(made.ok()) << text;
    EXPECT_EQ(made.code(), Code::unsupported);
    EXPECT_THAT(made.error().line(),
                testing::HasSubstr(std::string("cache 'layer-map': could not be created: ") + "layers: "));
    EXPECT_THAT(made.error().line(), testing::HasSubstr(why));
  }
}

TEST(LayerMap, FillsItsLayersAndLetsTheOthersPass) {
  MapOf map(machine(1, kLayerBytes));
  map.share(kLayerBytes);
  ASSERT_EQ(map.cache.table.fill(map.cache.self), TIERD_OK);
  ASSERT_EQ(map.cache.wishes.size(), 2u);
  EXPECT_EQ(map.cache.wishes[0].edition, 3u);
  EXPECT_THAT(*map.cache.wishes[0].neurons, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(map.cache.wishes[1].edition, 4u);
  EXPECT_THAT(admit(map.cache, 3, {0, 3}, 2).verdicts, ElementsAre(kKeep, kKeep));
  EXPECT_THAT(admit(map.cache, 1, {0, 3}, 0).verdicts, ElementsAre(kBypass, kBypass)) << "it is above";
  EXPECT_THAT(admit(map.cache, 5, {0, 3}, 0).verdicts, ElementsAre(kBypass, kBypass));
}

// When the GPU gives up a layer, the memory below keeps it and evicts its own last layer.
TEST(LayerMap, MovesWithTheBudgets) {
  MapOf dram(machine(1, 2 * kLayerBytes));
  EXPECT_THAT(dram.share(kLayerBytes), ElementsAre(0, 0, 0, 0, 0, 4, 2, 0));
  const uint32_t all[] = {0, 1, 2, 3};
  dram.cache.table.landed(dram.cache.self, 5, all, 4);
  dram.cache.table.landed(dram.cache.self, 6, all, 2);
  dram.cache.set_bytes(2, kLayerBytes);
  std::vector<uint32_t> slots = dram.all();
  std::vector<tierd_neuron> victims(6);
  tierd_victims_out out{6, 0, victims.data()};
  ASSERT_EQ(dram.cache.table.resize(dram.cache.self, kLayerBytes, slots.data(), &out), TIERD_OK);
  EXPECT_THAT(slots, ElementsAre(0, 0, 0, 4, 2, 0, 0, 0));
  EXPECT_EQ(out.n, 6u);
  EXPECT_EQ(victims[0].edition, 5u);
  EXPECT_EQ(victims[5].edition, 6u);
  EXPECT_EQ(dram.resplit(), 0u);
}

// Slots of another cache hold half of everything. They are accepted, and the map requests a new split.
TEST(LayerMap, TakesAnothersSlotsAtFirst) {
  MapOf map(alone());
  std::vector<uint32_t> slots = {3, 2, 1, 2, 1, 2, 1, 3};
  ASSERT_EQ(map.cache.table.share(map.cache.self, kMuch, slots.data()), TIERD_OK);
  EXPECT_THAT(slots, ElementsAre(3, 2, 1, 2, 1, 2, 1, 3));
  EXPECT_EQ(map.resplit(), 1u);
  slots = map.all();
  tierd_victims_out nobody{};
  ASSERT_EQ(map.cache.table.resize(map.cache.self, kLayerBytes, slots.data(), &nobody), TIERD_OK);
  EXPECT_THAT(slots, ElementsAre(0, 4, 2, 0, 0, 0, 0, 0));
  EXPECT_EQ(map.resplit(), 0u);
}

// Two units over one memory: each keeps its own neurons of the first layers; the memory below keeps both
// units' neurons of other layers.
TEST(LayerMap, EachUnitHasItsNeuronsOfALayer) {
  const auto place = [](MapOf& map) {
    map.cache.home = [](uint32_t, uint32_t neuron) { return neuron % 2; };
  };
  const std::vector<TestMemory> memories = {
      {"dram", 0, 0, false}, {"gpu", 1, kLayerBytes / 2}, {"gpu", 1, kLayerBytes}};
  MapOf first({memories, 2});
  place(first);
  EXPECT_THAT(first.share(kLayerBytes / 2), ElementsAre(0, 2, 1, 0, 0, 0, 0, 0));
  MapOf second({memories, 3});
  place(second);
  EXPECT_THAT(second.share(kLayerBytes), ElementsAre(0, 2, 1, 2, 1, 0, 0, 0));
  MapOf below({memories, 1});
  place(below);
  EXPECT_THAT(below.share(kLayerBytes / 2 + 100), ElementsAre(1, 0, 0, 2, 1, 0, 0, 0))
      << "the first one's half";
}

TEST(LayerMap, WishesForTheNextLayersOverTheBorderOfTheStep) {
  MapOf gpu(machine(2));
  gpu.share(0);
  EXPECT_THAT(gpu.ahead(0), ElementsAre(1, 2)) << "of the embedding: the first layer";
  EXPECT_THAT(gpu.ahead(1), ElementsAre(2, 3, 4));
  EXPECT_THAT(gpu.ahead(2), ElementsAre(3, 4));
  EXPECT_THAT(gpu.ahead(5), ElementsAre(6, 7, 1, 2)) << "the head, then the next step's first layer";
  EXPECT_THAT(gpu.ahead(7), ElementsAre(1, 2));
  MapOf two(machine(2), {{"layers_ahead", int64_t{2}, "test"}});
  two.share(0);
  EXPECT_THAT(two.ahead(2), ElementsAre(3, 4, 5, 6, 7));
  EXPECT_THAT(two.ahead(6), ElementsAre(7, 1, 2, 3, 4));
  MapOf none(machine(2), {{"layers_ahead", int64_t{0}, "test"}});
  none.share(0);
  EXPECT_TRUE(none.ahead(1).empty());
  MapOf dram(machine(1));
  dram.share(0);
  EXPECT_TRUE(dram.ahead(1).empty()) << "nobody computes from there";
}

}  // namespace
}  // namespace tierd
