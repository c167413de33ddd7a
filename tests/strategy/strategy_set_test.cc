#include "core/strategy/strategy_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/kernel/add_site.h"
#include "tests/plugins/choose.h"

namespace tierd {
namespace {

using testing::HasSubstr;

// The first site is given and shares the last one's edition; edition 0 belongs to site 1.
SiteTable three_sites() {
  SiteTable sites;
  for (SiteId s = 0; s < 3; ++s) {
    Site site;
    site.name = "site " + std::to_string(s);
    site.n = 4;
    if (s == 0) {
      site.set = Site::Set::given;
      site.editions = {1};
      sites.all.push_back(site);
      continue;
    }
    Edition edition;
    edition.label = 7;
    edition.slot_bytes = 4096;
    add_site(sites, site, edition);
  }
  return sites;
}

// A cache that answers as the test says and records its calls.
struct FakeCache {
  static inline const tierd_host* host = nullptr;
  static inline std::vector<uint32_t> most;
  static inline std::vector<uint32_t> slots;
  static inline std::vector<std::string> told;
  static inline int code = 0;
  static inline int alive = 0;
  static inline bool adopts = false;
  static int share(void*, uint64_t, uint32_t* out) {
    most.assign(out, out + host->n_editions);
    std::copy(slots.begin(), slots.end(), out);
    return code;
  }
  static int admit(void*, const tierd_set_view*, int, uint32_t, uint8_t*, tierd_victims_out*) { return 0; }
  static int landed(void*, uint32_t edition, const uint32_t* idx, uint32_t n) {
    std::string line = std::to_string(edition) + ":";
    for (uint32_t i = 0; i < n; ++i) line += " " + std::to_string(idx[i]);
    told.push_back(line);
    return 0;
  }
  static int adopt(void*, const tierd_set_view* const* resident, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) landed(nullptr, resident[i]->edition, resident[i]->idx, resident[i]->n);
    told.push_back("adopted " + std::to_string(n));
    return code;
  }
  static int create(const tierd_host* from, void** self) {
    host = from;
    *self = &alive;
    ++alive;
    return 0;
  }
  static void destroy(void*) { --alive; }
  static const void* extension(const char* id) {
    const auto with = [](auto adopting) {
      tierd_cache_1 made{};
      made.size = sizeof made;
      made.share = share;
      made.admit = admit;
      made.landed = landed;
      made.adopt = adopting;
      return made;
    };
    static const tierd_cache_1 table = with(decltype(tierd_cache_1::adopt){});
    static const tierd_cache_1 adopting = with(&adopt);
    if (std::strcmp(id, TIERD_CACHE_1) != 0) return nullptr;
    return adopts ? &adopting : &table;
  }
};
constexpr tierd_param kSize = {"size", TIERD_PARAM_INTEGER, 0, "8", 0, 64, nullptr, "a size"};
const tierd_plugin kFake = {TIERD_ABI_MAJOR,
                            TIERD_ABI_MINOR,
                            sizeof(tierd_plugin),
                            "cache",
                            "fake",
                            "1.0",
                            "",
                            nullptr,
                            0,
                            &kSize,
                            1,
                            sizeof(tierd_param),
                            FakeCache::create,
                            FakeCache::destroy,
                            FakeCache::extension};

StrategyChoice fake() {
  return {&kFake, "fake.so", *Parameters::read(kFake, {{"size", int64_t{9}, ""}}), nullptr};
}

class StrategySetTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeCache::slots = {0, 0};
    FakeCache::told.clear();
    FakeCache::code = 0;
    FakeCache::adopts = false;
  }
  Result<std::unique_ptr<StrategySet>> make() {
    StrategyChoices choices = choose_all();
    choices.cache = fake();
    return StrategySet::create(choices, sites_, {.seed = 42});
  }
  SiteTable sites_ = three_sites();
};

TEST_F(StrategySetTest, MakesWhatIsNamedAndDestroysIt) {
  {
    const auto set = make();
    ASSERT_TRUE(set.ok());
    EXPECT_EQ(FakeCache::alive, 1);
    EXPECT_EQ((*set)->strategies().caches.front().name, "fake");
    EXPECT_EQ((*set)->strategies().predictor.name, "dense");
    const tierd_host& host = *FakeCache::host;
    EXPECT_EQ(host.seed, 42u);
    ASSERT_EQ(host.n_sites, 3u);
    EXPECT_EQ(host.sites[0]->given, 1);
    EXPECT_STREQ(host.sites[0]->name, "site 0");
    for (const uint32_t edition : {0u, 1u}) {
      const tierd_site_view& owner = *host.sites[edition + 1];
      ASSERT_EQ(owner.n_editions, 1u);
      EXPECT_EQ(owner.editions[0], edition);
    }
    ASSERT_EQ(host.sites[0]->n_editions, 1u);
    EXPECT_EQ(host.sites[0]->editions[0], 1u);
    ASSERT_EQ(host.n_editions, 2u);
    for (const uint32_t e : {0u, 1u}) {
      const tierd_edition_view& edition = *host.editions[e];
      EXPECT_EQ(edition.size, sizeof edition);
      EXPECT_EQ(edition.edition, e);
      EXPECT_EQ(edition.site, e + 1);
      EXPECT_EQ(edition.n, 4u);
      EXPECT_EQ(edition.bytes, 4096u);
      EXPECT_EQ(edition.encoding, 7);
    }
  }
  EXPECT_EQ(FakeCache::alive, 0);
}

TEST_F(StrategySetTest, TheHostAnswersWhateverIsAsked) {
  const auto set = make();
  ASSERT_TRUE(set.ok());
  const tierd_host& host = *FakeCache::host;
  int64_t whole = 0;
  EXPECT_EQ(host.integer(host.context, "size", &whole), TIERD_OK);
  EXPECT_EQ(whole, 9);
  double number = 0;
  EXPECT_EQ(host.number(host.context, "size", &number), TIERD_E_INVALID);
  EXPECT_EQ(host.integer(host.context, "sise", &whole), TIERD_E_INVALID);
  uint8_t flag = 0;
  EXPECT_EQ(host.flag(host.context, "size", &flag), TIERD_E_INVALID);
  const char* text = nullptr;
  EXPECT_EQ(host.text(host.context, "size", &text), TIERD_E_INVALID);

  auto* memory = static_cast<uint8_t*>(host.scratch(host.context, 100));
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
  memory[99] = 7;
  memory = static_cast<uint8_t*>(host.scratch(host.context, 1 << 20));
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory[99], 7);
  EXPECT_EQ(host.scratch(host.context, UINT64_MAX), nullptr);

  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(host.metric(host.context, std::to_string(i).c_str(), i), TIERD_OK);
  }
  EXPECT_EQ(host.metric(host.context, "one more", 1), TIERD_E_NO_SPACE);
  EXPECT_EQ(host.metric(host.context, "63", 1), TIERD_OK);
  EXPECT_EQ((*set)->instance("cache").metrics().at("63"), 1);

  tierd_tensor_view view{};
  view.size = sizeof view;
  EXPECT_EQ(host.tensor(host.context, "none", &view), TIERD_E_INVALID);
  EXPECT_EQ(host.linear(host.context, 0, nullptr, 1, nullptr), TIERD_E_INVALID);
  host.log(host.context, TIERD_LOG_ERROR, "the last words");
  EXPECT_EQ((*set)->instance("cache").last_words(), "the last words");
}

TEST_F(StrategySetTest, TensorsAreSeenAndMultiplied) {
  auto tensors = std::make_shared<PluginTensors>();
  tensors->tensors.resize(2);
  tensors->tensors[0].name = "heat";
  tensors->tensors[0].dims = {3};
  tensors->tensors[0].data = {1, 2, 3};
  tensors->tensors[1].name = "table";
  tensors->tensors[1].dims = {2, 3};
  StrategyChoices choices = choose_all();
  choices.cache = fake();
  choices.cache.tensors = tensors;
  std::string multiplied;
  const auto set =
      StrategySet::create(choices, sites_,
                          {.linear = [&](const PluginTensors::Tensor& tensor, const float*, uint32_t rows,
                                         float*) { multiplied = tensor.name + " " + std::to_string(rows); }});
  ASSERT_TRUE(set.ok());
  const tierd_host& host = *FakeCache::host;
  tierd_tensor_view view{};
  view.size = sizeof view;
  ASSERT_EQ(host.tensor(host.context, "heat", &view), TIERD_OK);
  EXPECT_EQ(view.n_dims, 1u);
  EXPECT_EQ(view.dims[0], 3u);
  EXPECT_EQ(view.data[2], 3);
  EXPECT_EQ(host.linear(host.context, view.tensor, nullptr, 1, nullptr), TIERD_E_INVALID);
  ASSERT_EQ(host.tensor(host.context, "table", &view), TIERD_OK);
  EXPECT_EQ(view.data, nullptr);
  EXPECT_EQ(host.linear(host.context, view.tensor, nullptr, 4, nullptr), TIERD_OK);
  EXPECT_EQ(multiplied, "table 4");
}

// Plugin and host may have other versions of the view: only the fields that both know are written.
TEST_F(StrategySetTest, ATensorsViewIsWrittenAsFarAsBothSidesKnowIt) {
  auto tensors = std::make_shared<PluginTensors>();
  tensors->tensors.resize(1);
  tensors->tensors[0].name = "heat";
  tensors->tensors[0].dims = {1};
  tensors->tensors[0].data = {7};
  StrategyChoices choices = choose_all();
  choices.cache = fake();
  choices.cache.tensors = tensors;
  const auto set = StrategySet::create(choices, sites_, {});
  ASSERT_TRUE(set.ok());
  const tierd_host& host = *FakeCache::host;
  struct {
    tierd_tensor_view known;
    uint64_t later;
  } longer{};
  longer.known.size = sizeof longer;
  longer.later = 42;
  ASSERT_EQ(host.tensor(host.context, "heat", &longer.known), TIERD_OK);
  EXPECT_EQ(longer.known.size, sizeof longer.known);
  EXPECT_EQ(longer.known.data[0], 7);
  EXPECT_EQ(longer.later, 42u);
  tierd_tensor_view shorter{};
  shorter.size = sizeof shorter - 1;
  EXPECT_EQ(host.tensor(host.context, "heat", &shorter), TIERD_E_INVALID);
}

// A tier's own cache is swapped separately.
TEST_F(StrategySetTest, TiersHaveCachesOfTheirOwn) {
  StrategyChoices choices = choose_all("lru");
  choices.tier_caches["above"] = choose("cache", "fifo");
  Topology topology = Topology::over_store(3);
  topology.memory(1).name = "below";
  topology.memory(2).name = topology.memory(3).name = "above";
  const auto set = StrategySet::create(choices, sites_, {.topology = topology});
  ASSERT_TRUE(set.ok()) << set.error().line();
  const auto names = [&] {
    std::vector<std::string> each;
    for (const auto& cache : (*set)->strategies().caches) each.push_back(cache.name);
    return each;
  };
  EXPECT_EQ(names(), (std::vector<std::string>{"lru", "fifo", "fifo"}));
  EXPECT_EQ((*set)->instance("cache").choice().plugin->name, std::string("lru"));
  EXPECT_EQ((*set)->instance("cache", "above").choice().plugin->name, std::string("fifo"));
  EXPECT_EQ((*set)->cache_of(3).choice().plugin->name, std::string("fifo"));
  const std::vector<uint64_t> parts(3, 1000);
  const auto slots = (*set)->share(parts);
  ASSERT_TRUE(slots.ok()) << slots.error().line();
  std::deque<Residency> residencies;
  for (const std::vector<uint32_t>& of_memory : *slots) residencies.emplace_back(sites_.editions, of_memory);
  (*set)->set_residencies(residencies);
  ASSERT_TRUE((*set)->swap(choose("cache", "lfu"), parts, "above").ok());
  EXPECT_EQ(names(), (std::vector<std::string>{"lru", "lfu", "lfu"}));
  ASSERT_TRUE((*set)->swap(choose("cache", "none"), parts).ok());
  EXPECT_EQ(names(), (std::vector<std::string>{"none", "lfu", "lfu"}));
}

TEST_F(StrategySetTest, MemoriesAndUnitsAreSeen) {
  StrategyChoices choices = choose_all();
  choices.cache = fake();
  choices.balancer = choose("balancer", "round-robin");
  Topology topology = Topology::over_store(3);
  topology.memory(1).name = "below";
  topology.memory(2).over = topology.memory(3).over = 1;
  topology.units = {{.agent = 2, .memory = 2}, {.agent = 3, .memory = 3}};
  const auto set = StrategySet::create(choices, sites_, {.topology = topology});
  ASSERT_TRUE(set.ok()) << set.error().line();
  const tierd_host& host = *FakeCache::host;  // of the cache made last
  ASSERT_EQ(host.n_memories, 3u);
  EXPECT_EQ(host.memory, 3u);
  EXPECT_STREQ(host.memories[0]->tier, "below");
  EXPECT_EQ(host.memories[0]->memory, 1u);
  EXPECT_EQ(host.memories[0]->unit, TIERD_NO_UNIT);
  EXPECT_EQ(host.memories[2]->over, 1u);
  EXPECT_EQ(host.memories[2]->unit, 1u);
  ASSERT_EQ(host.n_units, 2u);
  EXPECT_EQ(host.units[1]->unit, 1u);
  EXPECT_EQ(host.units[1]->memory, 3u);
  // The memory of the second unit is home to that unit's neurons. A neuron out of range has no home.
  EXPECT_EQ(host.home(host.context, 1, 2), 0u);
  EXPECT_EQ(host.home(host.context, 1, 3), 1u);
  EXPECT_EQ(host.home(host.context, 1, 4), TIERD_NO_UNIT);
  EXPECT_EQ(host.home(host.context, 9, 0), TIERD_NO_UNIT);
  EXPECT_EQ(host.at_home(host.context, 1, 3), 1);
  EXPECT_EQ(host.at_home(host.context, 1, 2), 0);
  EXPECT_EQ(host.holders(host.context, 1, 3), 0u);
  std::deque<Residency> residencies;
  for (int m = 0; m < 3; ++m) residencies.emplace_back(sites_.editions, std::vector<uint32_t>{4, 4});
  (*set)->set_residencies(residencies);
  for (const size_t m : {0, 2}) {
    (void)residencies[m].lease(1, 3);
    residencies[m].landed(1, 3);
  }
  EXPECT_EQ(host.holders(host.context, 1, 3), 0b1010u);
  EXPECT_EQ(host.holders(host.context, 1, 2), 0u);
  EXPECT_EQ(host.holders(host.context, 9, 0), 0u);
  // A neuron that a memory holds, or that is in flight to one, counts as resident.
  std::vector<uint8_t> here(4, 9);
  ASSERT_EQ(host.resident(host.context, 1, here.data()), TIERD_OK);
  EXPECT_THAT(here, testing::ElementsAre(0, 0, 0, 1));
  (void)residencies[1].lease(1, 0);
  ASSERT_EQ(host.resident(host.context, 1, here.data()), TIERD_OK);
  EXPECT_THAT(here, testing::ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(host.resident(host.context, 9, here.data()), TIERD_E_INVALID);
  EXPECT_EQ(host.memories[0]->gap_bytes, 0u);
  (*set)->tell_gap(1, 32768);
  EXPECT_EQ(host.memories[0]->gap_bytes, 32768u);
  EXPECT_EQ(host.memories[1]->gap_bytes, 0u);
  // A cache learns the bytes of all memories before its own share is requested.
  EXPECT_EQ(host.memories[2]->bytes, 0u);
  ASSERT_TRUE((*set)->share({4096, 0, 8192}).ok());
  EXPECT_EQ(host.memories[0]->bytes, 4096u);
  EXPECT_EQ(host.memories[1]->bytes, 0u);
  EXPECT_EQ(host.memories[2]->bytes, 8192u);
  (*set)->tell_bytes(std::vector<uint64_t>{64, 64, 0});
  EXPECT_EQ(host.memories[0]->bytes, 64u);
  EXPECT_EQ(host.memories[2]->bytes, 0u);
  // No call for wishes is in progress.
  const tierd_wish wish{sizeof wish, TIERD_NO_MEMORY, 1, 1, TIERD_NO_EDITION, 0, nullptr, nullptr};
  EXPECT_EQ(host.wish(host.context, &wish), TIERD_E_INVALID);
  EXPECT_EQ(host.wish(host.context, nullptr), TIERD_E_INVALID);
}

TEST_F(StrategySetTest, SharesAreChecked) {
  const auto shared = [&](std::vector<uint32_t> slots, uint64_t bytes, int code = 0) {
    FakeCache::slots = std::move(slots);
    FakeCache::code = code;
    const auto set = make();
    EXPECT_TRUE(set.ok());
    const auto answer = (*set)->share({bytes});
    EXPECT_THAT(FakeCache::most, testing::ElementsAre(4, 4));
    return answer.ok() ? "" : answer.error().line();
  };
  EXPECT_EQ(shared({4, 4}, 8 * 4096), "");
  EXPECT_THAT(shared({4, 4}, 8 * 4096 - 1),
              HasSubstr("cache 'fake': share: 32768 bytes, expected at most 32767"));
  EXPECT_THAT(shared({5, 0}, 1 << 20), HasSubstr("5 slots for site 1, expected at most 4"));
  EXPECT_THAT(shared({0, 0}, 1 << 20, -2), HasSubstr("share: returned -2"));
}

TEST_F(StrategySetTest, EvictableIsValidAndNotInUse) {
  const auto set = make();
  ASSERT_TRUE(set.ok());
  const tierd_host& host = *FakeCache::host;
  EXPECT_EQ(host.evictable(host.context, 0, 0), 0);  // before there is a residency
  std::deque<Residency> residencies(1, Residency(sites_.editions, std::vector<uint32_t>{4, 4}));
  Residency& residency = residencies.front();
  (*set)->set_residencies(residencies);
  EXPECT_EQ(host.evictable(host.context, 0, 0), 0);
  residency.lease(0, 0);
  EXPECT_EQ(host.evictable(host.context, 0, 0), 0);
  residency.landed(0, 0);
  EXPECT_EQ(host.evictable(host.context, 0, 0), 1);
  residency.pin(0, 0);
  EXPECT_EQ(host.evictable(host.context, 0, 0), 0);
  // Any arguments of a plugin are accepted.
  EXPECT_EQ(host.evictable(host.context, 0, 4), 0);
  EXPECT_EQ(host.evictable(host.context, 2, 0), 0);
  EXPECT_EQ(host.evictable(host.context, UINT32_MAX, UINT32_MAX), 0);
}

// A quantizer that ranks if there are several editions.
struct RankingQuantizer {
  static int create(const tierd_host*, void** self) {
    static int instance = 0;
    *self = &instance;
    return 0;
  }
  static int choose(void*, const tierd_set_view*, uint8_t*) { return 0; }
  static const void* extension(const char* id) {
    static const tierd_levels_1 table = {sizeof table, choose,
                                         [](void*) -> uint32_t { return TIERD_LEVELS_NEEDS_SCORES; }};
    return std::strcmp(id, TIERD_LEVELS_1) == 0 ? &table : nullptr;
  }
  static StrategyChoice choice() {
    static const tierd_plugin plugin = [] {
      tierd_plugin ranking = kFake;
      ranking.kind = "quantizer";
      ranking.name = "ranking";
      ranking.n_params = 0;
      ranking.create = create;
      ranking.destroy = [](void*) {};
      ranking.extension = extension;
      return ranking;
    }();
    return {&plugin, "ranking.so", *Parameters::read(plugin, {}), nullptr};
  }
};

TEST_F(StrategySetTest, WhoRanksNeedsAPredictorThatGivesScores) {
  StrategyChoices choices = choose_all();
  choices.quantizer = RankingQuantizer::choice();
  auto one_edition = StrategySet::create(choices, sites_, {.seed = 42});
  ASSERT_TRUE(one_edition.ok()) << one_edition.error().line();
  EXPECT_THAT((*one_edition)->strategies().scored, testing::Each(0)) << "there is no choice";

  SiteTable several = sites_;
  several.editions.push_back(several.editions.back());
  several.all[1].editions.push_back(2);
  several.all[1].label = TIERD_AXIS_CHANNEL;  // the axis of predictor top-k
  const auto refused = StrategySet::create(choices, several, {.seed = 42});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().line(),
            "quantizer 'ranking': ranks neurons by their scores, but predictor 'dense' has none");

  choices.predictor = choose("predictor", "top-k");
  const auto set = StrategySet::create(choices, several, {.seed = 42});
  ASSERT_TRUE(set.ok()) << set.error().line();
  EXPECT_THAT((*set)->strategies().scored, testing::ElementsAre(0, 1, 0));
  // A strategy that replaces another one is checked in the same way.
  EXPECT_THAT((*set)->swap(choose("predictor", "random"), {0}).error().line(),
              HasSubstr("ranks neurons by their scores, but predictor 'random' has none"));
  EXPECT_EQ((*set)->strategies().predictor.name, "top-k");
  ASSERT_TRUE((*set)->swap(choose("quantizer", "plain"), {0}).ok());
  EXPECT_THAT((*set)->strategies().scored, testing::Each(0));
  ASSERT_TRUE((*set)->swap(choose("predictor", "random"), {0}).ok());
  EXPECT_THAT((*set)->swap(RankingQuantizer::choice(), {0}).error().line(),
              HasSubstr("ranks neurons by their scores, but predictor 'random' has none"));
  EXPECT_EQ((*set)->strategies().quantizer.name, "plain");
}

// A predictor that fits no memory.
struct HungryPredictor {
  static inline int alive = 0;
  static int create(const tierd_host*, void** self) {
    *self = &alive;
    ++alive;
    return 0;
  }
  static const void* extension(const char* id) {
    static const tierd_predictor_1 table = [] {
      tierd_predictor_1 hungry{};
      hungry.size = sizeof hungry;
      hungry.caps = [](void*) { return uint32_t{0}; };
      hungry.predict = [](void*, uint32_t, const tierd_rows_view*, tierd_set_out* out) {
        out->all = 1;
        return int{TIERD_OK};
      };
      hungry.fits = [](void*) { return int{TIERD_E_NO_SPACE}; };
      return hungry;
    }();
    return std::strcmp(id, TIERD_PREDICTOR_1) == 0 ? &table : nullptr;
  }
  static StrategyChoice choice() {
    static const tierd_plugin plugin = [] {
      tierd_plugin hungry = kFake;
      hungry.kind = "predictor";
      hungry.name = "hungry";
      hungry.n_params = 0;
      hungry.create = create;
      hungry.destroy = [](void*) { --alive; };
      hungry.extension = extension;
      return hungry;
    }();
    return {&plugin, "hungry.so", *Parameters::read(plugin, {}), nullptr};
  }
};

TEST_F(StrategySetTest, APredictorThatLacksMemoryTakesNoOthersPlace) {
  const auto set = StrategySet::create(choose_all(), sites_, {.seed = 42});
  ASSERT_TRUE(set.ok());
  const Status refused = (*set)->swap(HungryPredictor::choice(), {0});
  EXPECT_EQ(refused.code(), Code::no_space) << refused.error().line();
  EXPECT_EQ((*set)->strategies().predictor.name, "dense");
  EXPECT_EQ(HungryPredictor::alive, 0);
}

TEST_F(StrategySetTest, ASwappedCacheGetsTheArenaAndHearsWhatIsThere) {
  const auto set = StrategySet::create(choose_all("lru"), sites_, {.seed = 42});
  ASSERT_TRUE(set.ok());
  std::deque<Residency> residencies(1, Residency(sites_.editions, std::vector<uint32_t>{2, 3}));
  Residency& residency = residencies.front();
  (*set)->set_residencies(residencies);
  for (const uint32_t neuron : {3u, 1u}) {
    residency.lease(0, neuron);
    residency.landed(0, neuron);
  }
  FakeCache::slots = {2, 3};
  ASSERT_TRUE((*set)->swap(fake(), {1 << 20}).ok());
  EXPECT_THAT(FakeCache::most, testing::ElementsAre(2, 3));
  EXPECT_THAT(FakeCache::told, testing::ElementsAre("0: 1 3"));
  EXPECT_EQ((*set)->strategies().caches.front().name, "fake");
  EXPECT_EQ(FakeCache::alive, 1);
  // A cache that claims more slots than the arena has is refused, and nothing changes.
  FakeCache::slots = {3, 3};
  EXPECT_EQ((*set)->swap(fake(), {1 << 20}).code(), Code::plugin_fault);
  EXPECT_EQ(FakeCache::alive, 1);
  // A cache that adopts receives all resident neurons at once.
  FakeCache::adopts = true;
  FakeCache::slots = {2, 3};
  FakeCache::told.clear();
  ASSERT_TRUE((*set)->swap(fake(), {1 << 20}).ok());
  EXPECT_THAT(FakeCache::told, testing::ElementsAre("0: 1 3", "adopted 1"));
  ASSERT_TRUE((*set)->swap(choose("cache", "none"), {1 << 20}).ok());
  EXPECT_EQ(FakeCache::alive, 0);
  ASSERT_TRUE((*set)->swap(choose("predictor", "random"), {0}).ok());
  EXPECT_EQ((*set)->strategies().predictor.name, "random");
}

}  // namespace
}  // namespace tierd
