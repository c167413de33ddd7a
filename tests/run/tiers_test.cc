#include "core/run/tiers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/system/cores.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<TierTable> chosen(const std::vector<std::string>& settings) {
  const auto config = load_config("", settings);
  EXPECT_TRUE(config.ok()) << config.error().line();
  return choose_tiers(*config);
}
std::string refused(const std::vector<std::string>& settings) {
  const auto tiers = chosen(settings);
  EXPECT_EQ(tiers.code(), Code::invalid_argument);
  return tiers.ok() ? "accepted" : tiers.error().line();
}
// Returns "0>1 1>2": the source and destination memories of the links.
std::string links_of(const Topology& topology) {
  std::string text;
  for (const Link& link : topology.links)
    text += (text.empty() ? "" : " ") + std::to_string(link.from) + ">" + std::to_string(link.to);
  return text;
}
std::vector<std::string> names_of(const TierTable& tiers) {
  std::vector<std::string> names;
  for (const Tier& tier : tiers.memories) names.push_back(tier.config.name);
  return names;
}

TEST(TierTable, WithoutAWordThereIsMemoryOverTheStore) {
  const auto tiers = chosen({});
  ASSERT_TRUE(tiers.ok()) << tiers.error().line();
  EXPECT_EQ(tiers->store.config.name, "flash");
  EXPECT_EQ(tiers->store.first_agent, 1);
  EXPECT_THAT(names_of(*tiers), ElementsAre("dram"));
  EXPECT_EQ(tiers->memories[0].first_agent, 2);
  EXPECT_EQ(links_of(tiers->topology), "0>1");
  ASSERT_EQ(tiers->topology.units.size(), 1u);
  EXPECT_EQ(tiers->topology.units[0].memory, 1);
}

// The numbers do not depend on the order of the tables.
TEST(TierTable, MemoriesAreNumberedFromTheLowestUpwards) {
  const std::vector<std::string> settings = {"tiers.b.kind=dram",    "tiers.b.over=dram", "tiers.a.kind=dram",
                                             "tiers.a.over=b",       "tiers.c.kind=dram", "tiers.c.count=2",
                                             "tiers.b.compute=false"};
  for (const bool turned : {false, true}) {
    std::vector<std::string> order = settings;
    if (turned) std::reverse(order.begin(), order.end());
    const auto tiers = chosen(order);
    ASSERT_TRUE(tiers.ok()) << tiers.error().line();
    EXPECT_THAT(names_of(*tiers), ElementsAre("c", "dram", "b", "a"));
    EXPECT_EQ(links_of(tiers->topology), "0>1 0>2 0>3 3>4 4>5");
    EXPECT_EQ(tiers->topology.memory(4).over, 3);
    EXPECT_EQ(tiers->topology.memory(5).over, 4);
    EXPECT_EQ(tiers->topology.units.size(), 4u);
    EXPECT_EQ(tiers->topology.units[3].memory, 5);
    EXPECT_EQ(tiers->topology.units[3].agent, tiers->memories[3].first_agent);
    EXPECT_EQ(tiers->tier_of(2).config.name, "c");
    EXPECT_EQ(tiers->tier_of(0).config.name, "flash");
    EXPECT_THAT(*tiers->units_named("c", "run.attention"), ElementsAre(0, 1));
    EXPECT_THAT(*tiers->units_named("a.0", "run.dense"), ElementsAre(3));
    EXPECT_EQ(tiers->units_named("b", "run.dense").error().line(),
              "run.dense: there is no unit 'b'; expected one of c.0, c.1, dram.0, a.0, or a tier's name for "
              "all of its units");
  }
}

TEST(TierTable, LinksAreThoseThatAreNamedAndTheOneFromBelow) {
  const std::vector<std::string> over = {"tiers.a.kind=dram", "tiers.a.over=dram"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), over.begin(), over.end());
    const auto tiers = chosen(more);
    EXPECT_TRUE(tiers.ok()) << tiers.error().line();
    return tiers.ok() ? links_of(tiers->topology) : "";
  };
  EXPECT_EQ(with({"tiers.a.link=dram,flash"}), "0>1 1>2 0>2");
  EXPECT_EQ(with({"tiers.a.link=flash"}), "0>1 0>2 1>2");
  EXPECT_EQ(with({"tiers.a.count=2"}), "0>1 1>2 1>3");
  EXPECT_EQ(with({"tiers.a.count=2", "tiers.dram.count=2"}), "0>1 0>2 1>3 2>4");
  EXPECT_EQ(with({"tiers.dram.count=2", "tiers.a.count=2", "tiers.a.link=dram"}), "0>1 0>2 1>3 2>3 1>4 2>4");
  const auto none = chosen({"tiers.dram.count=0", "tiers.a.kind=dram"});
  ASSERT_TRUE(none.ok()) << none.error().line();
  EXPECT_THAT(names_of(*none), ElementsAre("a"));
}

TEST(TierTable, AgentsOfOneTierMayBeToldTheirCores) {
  const auto tiers = chosen({"tiers.dram.cores=0-2,7", "tiers.flash.cores=3", "run.machine=described.toml"});
  ASSERT_TRUE(tiers.ok()) << tiers.error().line();
  EXPECT_THAT(tiers->memories[0].cores, ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(tiers->store.cores, ElementsAre(3));
  for (const char* cores : {"2-1", "a", "1-", "0,,1", "-3", "99999", "1 2"})
    EXPECT_THAT(refused({std::string("tiers.dram.cores=\"") + cores + "\""}),
                HasSubstr("tiers.dram.cores: '" + std::string(cores) + "' is not a list of cores"));
  EXPECT_EQ(refused({"tiers.dram.cores=\"0-2,1\""}), "tiers.dram.cores: 1 is named twice");
}

// A thread is bound to each named core.
TEST(TierTable, ThereAreNotMoreCoresThanTheProcessHas) {
  const size_t most = own_cores().units.size();
  EXPECT_TRUE(chosen({fmt::format("tiers.dram.cores=\"0-{}\"", most - 1)}).ok());
  EXPECT_EQ(
      refused({fmt::format("tiers.dram.cores=\"0-{}\"", most)}),
      fmt::format("tiers.dram.cores: '0-{}' names {} cores, but this process has {}", most, most + 1, most));
}

TEST(TierTable, ALinkNamesEachTierOnce) {
  for (const char* twice : {"dram,dram", "dram, flash,dram"}) {
    EXPECT_EQ(refused({"tiers.a.kind=dram", "tiers.a.over=dram", std::string("tiers.a.link=") + twice}),
              "tiers.a.link: 'dram' is named twice");
  }
  EXPECT_EQ(refused({"tiers.a.kind=dram", "tiers.a.over=dram", "tiers.a.link=flash,dram,flash"}),
            "tiers.a.link: 'flash' is named twice");
}

// The agent itself moves neurons into its memory, on a lane of its own, and no link leads out of that memory.
TEST(TierTable, AMemoryThatIsApartIsReachedByItsAgentAlone) {
  const auto tiers = chosen({"tiers.gpu.over=dram"});
  ASSERT_TRUE(tiers.ok()) << tiers.error().line();
  EXPECT_EQ(links_of(tiers->topology), "0>1 1>2");
  EXPECT_EQ(tiers->topology.links[1].agent, tiers->memories[1].first_agent);
  EXPECT_EQ(tiers->topology.links[1].lane, 1);
  EXPECT_EQ(tiers->topology.units[1].lane, 0);
  const std::string why =
      "agent 'gpu' has a memory of its own device, into which reads from the store cannot land; set a tier "
      "that it fetches from, as in tiers.gpu.over = \"dram\"";
  EXPECT_EQ(refused({"tiers.gpu.kind=gpu"}), "tiers.gpu.over: " + why);
  EXPECT_EQ(refused({"tiers.gpu.over=dram", "tiers.gpu.link=dram,flash"}), "tiers.gpu.link: " + why);
  const std::string nobody = "no other agent can access the memory of agent 'gpu'";
  EXPECT_EQ(refused({"tiers.gpu.over=dram", "tiers.a.kind=dram", "tiers.a.over=gpu"}),
            "tiers.a.over: " + nobody);
  EXPECT_EQ(refused({"tiers.gpu.over=dram", "tiers.z.kind=dram", "tiers.z.over=dram", "tiers.z.link=gpu"}),
            "tiers.z.link: " + nobody);
}

// Direct reads fetch neurons that no nearer memory holds. The memory still lies over DRAM.
TEST(TierTable, AnAgentMayReadTheStoreIntoItsOwnMemory) {
  for (const char* link : {"", "dram", "dram,flash"}) {
    const auto tiers =
        chosen({"tiers.gpu.over=dram", "tiers.gpu.direct=true", std::string("tiers.gpu.link=") + link});
    ASSERT_TRUE(tiers.ok()) << tiers.error().line();
    EXPECT_EQ(links_of(tiers->topology), "0>1 1>2 0>2");
    EXPECT_TRUE(tiers->memories[1].reads_directly());
    EXPECT_EQ(tiers->topology.memory(2).over, 1);
    for (const size_t l : {1, 2}) EXPECT_EQ(tiers->topology.links[l].agent, tiers->memories[1].first_agent);
    EXPECT_EQ(tiers->topology.links[1].lane, 1);
    EXPECT_EQ(tiers->topology.links[2].lane, 2);
  }
  EXPECT_FALSE(chosen({"tiers.gpu.over=dram"})->memories[1].reads_directly());
  EXPECT_EQ(refused({"tiers.gpu.direct=true"}),
            "tiers.gpu.over: agent 'gpu' has a memory of its own device, into which reads from the store "
            "cannot land; set a tier that it fetches from, as in tiers.gpu.over = \"dram\"");
  EXPECT_THAT(refused({"tiers.dram.direct=true"}), HasSubstr("direct"));
}

TEST(TierTable, WhatCannotBeIsToldByItsKey) {
  const auto a = [](std::vector<std::string> more) {
    more.insert(more.begin(), "tiers.a.kind=dram");
    return refused(more);
  };
  EXPECT_EQ(refused({"tiers.flash.count=0"}),
            "tiers: no tier's agent serves 'read' ('dram' of tiers.dram); set the agent of one tier to one "
            "that does, such as 'flash' (tiers.NAME.kind)");
  EXPECT_EQ(refused({"tiers.dram.kind=flash"}),
            "tiers.dram.kind: agent 'flash' serves 'read', as the agent of tiers.flash does; expected one "
            "such agent");
  EXPECT_EQ(refused({"tiers.dram.count=0"}), "tiers: no tier has a memory; add one such as [tiers.dram]");
  EXPECT_EQ(refused({"tiers.dram.kind=null"}), "tiers.dram.kind: agent 'null' does not serve 'run'");
  EXPECT_EQ(refused({"tiers.dram.compute=false"}), "tiers: no tier computes; set compute = true in one");
  EXPECT_EQ(refused({"tiers.dram.count=33"}),
            "tiers.dram.count: 33 agents make more than 32 memories in total");
  EXPECT_EQ(a({"tiers.a.count=16", "tiers.dram.count=17"}),
            "tiers.dram.count: 17 agents make more than 32 memories in total");
  EXPECT_EQ(refused({"tiers.dram.count=4294967295"}),
            "tiers.dram.count: 4294967295 agents make more than 32 memories in total");
  EXPECT_EQ(a({"tiers.a.over=b"}), "tiers.a.over: there is no tier 'b'");
  EXPECT_EQ(a({"tiers.a.over=a"}), "tiers.a.over: the tier is over itself, directly or through others");
  EXPECT_THAT(a({"tiers.a.over=dram", "tiers.dram.over=a"}),
              HasSubstr("over: the tier is over itself, directly or through others"));
  EXPECT_EQ(a({"tiers.a.over=dram", "tiers.a.count=3", "tiers.dram.count=2"}),
            "tiers.a.over: tiers.a.count is 3, and tiers.dram.count is 2; expected tiers.dram.count to be 1, "
            "or both to be equal");
  EXPECT_EQ(a({"tiers.a.link=a"}), "tiers.a.link: 'a' has one memory, which cannot fetch from itself");
  EXPECT_EQ(a({"tiers.a.link=dram"}), "tiers.a.link: 'dram' is not below this tier");
  EXPECT_EQ(a({"tiers.a.over=dram", "tiers.a.link=x"}), "tiers.a.link: there is no tier 'x'");
  EXPECT_EQ(refused({"tiers.n.kind=null", "tiers.n.over=dram", "tiers.n.compute=false"}),
            "tiers.n.kind: agent 'null' does not serve 'move', which fetches neurons from other memories");
  for (const char* setting :
       {"capacity=1GB", "staging=1MB", "over=dram", "link=dram", "compute=false", "recode=q4_0"}) {
    const std::string key(setting, std::string(setting).find('='));
    EXPECT_EQ(refused({std::string("tiers.flash.") + setting}),
              "tiers.flash." + key + ": is set, but does not apply to the tier that reads the store");
  }
}

std::string recoding_of(const std::vector<std::string>& settings) {
  auto tiers = chosen(settings);
  EXPECT_TRUE(tiers.ok()) << tiers.error().line();
  const auto recoding = tiers->choose_recoding();
  if (!recoding.ok()) return recoding.error().line();
  std::string text = recoding->key;
  for (const Encoding encoding : recoding->encodings) text += " " + std::string(name(encoding));
  for (const Tier& tier : tiers->memories) text += tier.recodes ? " in " + tier.config.name : "";
  return text;
}

TEST(TierTable, TiersAboveMayRecode) {
  const std::vector<std::string> above = {"tiers.a.kind=dram", "tiers.a.over=dram"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), above.begin(), above.end());
    return recoding_of(more);
  };
  EXPECT_EQ(with({}), "");
  EXPECT_EQ(with({"tiers.a.recode=q8_0,q4_0"}), "tiers.a.recode q8_0 q4_0 in a");
  EXPECT_EQ(with({"tiers.b.kind=dram", "tiers.b.over=dram", "tiers.a.recode=q4_0", "tiers.b.recode=q4_0"}),
            "tiers.b.recode q4_0 in a in b");
  EXPECT_EQ(with({"tiers.a.recode=q9"}),
            "tiers.a.recode: 'q9' is not an encoding; expected none, or a list such as q8_0,q4_0");
  EXPECT_EQ(with({"tiers.b.kind=dram", "tiers.b.over=dram", "tiers.a.recode=q8_0", "tiers.b.recode=q4_0"}),
            "tiers.b.recode: 'q4_0' differs from tiers.a.recode; expected the same editions in all tiers "
            "that recode");
  EXPECT_EQ(with({"tiers.dram.recode=q4_0"}),
            "tiers.dram.recode: neurons that are read from the store are not recoded; put a tier between "
            "them (tiers.dram.over), or store these editions (model.editions)");
  EXPECT_EQ(with({"tiers.a.link=dram,flash", "tiers.a.recode=q4_0"}),
            "tiers.a.recode: neurons that are read from the store are not recoded; put a tier between them "
            "(tiers.a.over), or store these editions (model.editions)");
  EXPECT_EQ(with({"tiers.a.recode=q4_0", "tiers.a.compute=false"}),
            "tiers.a.recode: neurons are recoded by the agent that computes from them, but agent 'dram' does "
            "not recode, or does not compute");
}

}  // namespace
}  // namespace tierd
