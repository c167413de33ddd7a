#include "core/host/strategy_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/plugins/all_plugins.h"

namespace tierd {
namespace {

using testing::HasSubstr;

std::vector<Site> two_sites() {
  std::vector<Site> sites(3);
  for (SiteId s = 0; s < 3; ++s) {
    sites[s].name = "site " + std::to_string(s);
    sites[s].domain = s;
    sites[s].n = 4;
    sites[s].slot_bytes = 4096;
  }
  sites[0].domain = 2;
  sites[0].given = true;
  return sites;
}

// A cache that hands out what the test says, and shows what it sees.
struct FakeCache {
  static inline const tierd_host* host = nullptr;
  static inline std::vector<uint32_t> slots;
  static inline int code = 0;
  static inline bool can_be_made = true;
  static inline int alive = 0;
  static int share(void*, uint64_t, uint32_t* out) {
    std::copy(slots.begin(), slots.end(), out);
    return code;
  }
  static int admit(void*, const tierd_set_view*, int, uint32_t, uint8_t*, tierd_victims_out*) { return 0; }
  static void* create(const tierd_host* from) {
    host = from;
    if (!can_be_made) return nullptr;
    ++alive;
    return &alive;
  }
  static void destroy(void*) { --alive; }
  static const void* extension(const char* id) {
    static const tierd_cache_1 table = {sizeof table, share,   admit,   nullptr,
                                        nullptr,      nullptr, nullptr, nullptr};
    return std::strcmp(id, TIERD_CACHE_1) == 0 ? &table : nullptr;
  }
  static const void* no_extension(const char*) { return nullptr; }
};
const tierd_plugin kFake = {
    sizeof(tierd_plugin), "cache", "fake", "", 0, FakeCache::create, FakeCache::destroy,
    FakeCache::extension};
const tierd_plugin kEmpty = {
    sizeof(tierd_plugin),   "cache", "empty", "", 0, FakeCache::create, FakeCache::destroy,
    FakeCache::no_extension};

std::vector<const tierd_plugin*> plugins() {
  std::vector<const tierd_plugin*> all(all_plugins().begin(), all_plugins().end());
  all.push_back(&kFake);
  all.push_back(&kEmpty);
  return all;
}

class StrategySetTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeCache::slots = {0, 0, 0};
    FakeCache::code = 0;
    FakeCache::can_be_made = true;
  }
  Result<std::unique_ptr<StrategySet>> make(const std::string& cache) {
    StrategyNames names;
    names.cache = cache;
    return StrategySet::create(plugins_, names, sites_, 42);
  }
  std::vector<const tierd_plugin*> plugins_ = plugins();
  std::vector<Site> sites_ = two_sites();
};

TEST_F(StrategySetTest, MakesWhatIsNamedAndDestroysIt) {
  {
    const auto set = make("fake");
    ASSERT_TRUE(set.ok());
    EXPECT_EQ(FakeCache::alive, 1);
    EXPECT_STREQ((*set)->strategies().cache.name, "fake");
    EXPECT_STREQ((*set)->strategies().predictor.name, "dense");
    ASSERT_NE(FakeCache::host, nullptr);
    EXPECT_EQ(FakeCache::host->seed, 42u);
    ASSERT_EQ(FakeCache::host->n_sites, 3u);
    const tierd_site_view& embed = FakeCache::host->sites[0];
    EXPECT_EQ(embed.alias_of, 2u);
    EXPECT_EQ(embed.given, 1);
    EXPECT_STREQ(embed.name, "site 0");
    EXPECT_EQ(FakeCache::host->sites[1].alias_of, TIERD_NO_SITE);
    EXPECT_EQ(FakeCache::host->sites[1].enc[0].bytes, 4096u);
  }
  EXPECT_EQ(FakeCache::alive, 0);
}

TEST_F(StrategySetTest, UnknownNamesListTheKnown) {
  const auto set = make("lruu");
  EXPECT_EQ(set.code(), Code::not_found);
  EXPECT_EQ(set.error().line(),
            "cache.name: there is no cache 'lruu'; known: none, pinned, lru, fake, empty");
  StrategyNames names;
  names.predictor = "lru";  // of another kind
  EXPECT_EQ(StrategySet::create(plugins_, names, sites_, 0).error().line(),
            "predictor.name: there is no predictor 'lru'; known: dense");
}

TEST_F(StrategySetTest, APluginThatOffersNothingOrCannotBeMade) {
  EXPECT_EQ(make("empty").error().line(), "cache 'empty': does not offer tierd.cache/1");
  FakeCache::can_be_made = false;
  const auto set = make("fake");
  EXPECT_EQ(set.code(), Code::plugin_fault);
  EXPECT_EQ(set.error().line(), "cache 'fake': could not be created");
}

TEST_F(StrategySetTest, SharesAreChecked) {
  const auto set = make("fake");
  ASSERT_TRUE(set.ok());
  FakeCache::slots = {0, 4, 4};
  const auto whole = (*set)->share(8 * 4096);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(*whole, (std::vector<uint32_t>{0, 4, 4}));
  EXPECT_THAT((*set)->share(8 * 4096 - 1).error().line(),
              HasSubstr("cache 'fake': share: 32768 bytes of 32767"));
  FakeCache::slots = {0, 5, 0};
  EXPECT_THAT((*set)->share(1 << 20).error().line(), HasSubstr("5 slots for site 1"));
  FakeCache::slots = {1, 0, 0};  // an alias has none
  EXPECT_THAT((*set)->share(1 << 20).error().line(), HasSubstr("1 slots for site 0"));
  FakeCache::code = -2;
  EXPECT_THAT((*set)->share(1 << 20).error().line(), HasSubstr("share: answered -2"));
}

TEST_F(StrategySetTest, EvictableIsValidAndNotInUse) {
  const auto set = make("fake");
  ASSERT_TRUE(set.ok());
  const tierd_host& host = *FakeCache::host;
  EXPECT_EQ(host.evictable(host.context, 1, 0), 0);  // before there is a residency
  Residency residency(sites_, std::vector<uint32_t>{0, 4, 4});
  (*set)->set_residency(&residency);
  EXPECT_EQ(host.evictable(host.context, 1, 0), 0);
  residency.lease(1, 0);
  EXPECT_EQ(host.evictable(host.context, 1, 0), 0);
  residency.landed(1, 0);
  EXPECT_EQ(host.evictable(host.context, 1, 0), 1);
  residency.pin(1, 0);
  EXPECT_EQ(host.evictable(host.context, 1, 0), 0);
  // A plugin may ask anything.
  EXPECT_EQ(host.evictable(host.context, 1, 4), 0);
  EXPECT_EQ(host.evictable(host.context, 3, 0), 0);
  EXPECT_EQ(host.evictable(host.context, UINT32_MAX, UINT32_MAX), 0);
}

}  // namespace
}  // namespace tierd
