// Sites whose neurons of one number are contiguous in the file (layer groups). A prefetch for all of them is
// one read, and each neuron lands where its own site has room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/layout/bundle.h"
#include "tests/kernel/scripted_answers.h"
#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

using testing::HasSubstr;

WorldOptions three(uint32_t n, std::vector<uint32_t> slots, uint32_t blocks) {
  WorldOptions options;
  options.neurons = {n, n, n};
  options.slots = std::move(slots);
  options.blocks = blocks;
  options.neurons_per_block = kRun;
  options.bundles = true;
  options.side_by_side = true;
  options.attempts = 1;
  return options;
}

// Site 0 prefetches `wished` for both others, which then use `active`.
class GroupWorld : public ScriptedWorld {
 public:
  GroupWorld(const WorldOptions& options, Neurons wished, Neurons active) : ScriptedWorld(options) {
    script.predict = [active](SiteId site, tierd_set_out* out) {
      return answer_neurons(site == 0 ? Neurons{0} : active, out);
    };
    script.look_ahead = [wished](SiteId site) {
      return site == 0 ? std::vector<Ahead>{{1, 1, wished}, {2, 2, wished}} : std::vector<Ahead>{};
    };
  }
  // Returns all reads but the one of site 0 itself.
  std::string read_ahead() const {
    std::string all = reads();
    return all.substr(all.find(']') + 1);
  }
};

TEST(Groups, AreReadTogether) {
  GroupWorld world(three(4, {0, 0, 0}, 8), {1, 3}, {1, 2});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  EXPECT_EQ(world.read_ahead(), "[4,10,5,11]") << "neurons 1 and 3 of site 1, then of site 2";
  for (const SiteId site : {1u, 2u}) {
    ASSERT_TRUE(world.pass(site, 0).ok());
    world.expect_whole(site, 0, {1, 2});
  }
  EXPECT_EQ(world.scheduler->counters().staged, 2u);
  EXPECT_EQ(world.scheduler->counters().misses, 1u + 2u);
  world.expect_nothing_lost();
}

// One read carries neurons that are kept, to the arena, and others, to blocks.
TEST(Groups, GoWhereEachSiteHasRoom) {
  GroupWorld world(three(4, {0, 4, 1}, 8), {1, 3}, {1, 3});
  world.script.admit = keep_what_fits();
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  EXPECT_EQ(world.read_ahead(), "[4,10,11,5]") << "of site 2 neuron 1 is kept, neuron 3 is not";
  for (const SiteId site : {1u, 2u}) {
    ASSERT_TRUE(world.pass(site, 0).ok());
    world.expect_whole(site, 0, {1, 3});
  }
  world.expect_nothing_lost();
}

TEST(Groups, ComeInWholeRuns) {
  Neurons wished;
  for (uint32_t i = 0; i < 3 * kRun; i += 2) wished.push_back(i);
  WorldOptions options = three(3 * kRun, {0, 0, 0}, 16);
  GroupWorld world(options, wished, wished);
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  // Two runs of 32 fill a block.
  ASSERT_EQ(world.flash.started.size(), 3u);
  EXPECT_EQ(world.flash.started[1].extents.size(), 2u * 64);
  EXPECT_EQ(world.flash.started[2].extents.size(), 2u * 32);
  for (const SiteId site : {1u, 2u}) {
    ASSERT_TRUE(world.pass(site, 0).ok());
    world.expect_whole(site, 0, wished);
  }
  world.expect_nothing_lost();
}

// With two blocks, prefetches may use one.
TEST(Groups, ComeOneByOneWhereBlocksAreFew) {
  GroupWorld world(three(4, {0, 0, 0}, 2), {1, 3}, {1, 3});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  EXPECT_EQ(world.read_ahead(), "[4,10]");
  for (const SiteId site : {1u, 2u}) {
    ASSERT_TRUE(world.pass(site, 0).ok());
    world.expect_whole(site, 0, {1, 3});
  }
  world.expect_nothing_lost();
}

// A damaged extent fails only the site that owns it.
TEST(Groups, AFailureIsThatOfOneSite) {
  GroupWorld world(three(4, {0, 0, 0}, 8), {1, 3}, {1, 3});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  // Extent 5, neuron 1 of site 2, is read again by itself.
  world.idle = [&] {
    if (world.flash.open.empty()) return;
    const Neurons extents = world.flash.open.front().extents;
    const auto bad = std::ranges::find(extents, 5u);
    world.flash.finish(0, bad == extents.end() ? DoneStatus::ok : DoneStatus::corrupt,
                       bad == extents.end() ? 0 : static_cast<uint32_t>(bad - extents.begin()));
  };
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.expect_whole(1, 0, {1, 3});
  const Status failed = world.pass(2, 0);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().line(), HasSubstr("weights.bin: extent 5: "));
  world.expect_nothing_lost();
}

// A read is not cancelled while another site needs it.
TEST(Groups, AreCancelledTogether) {
  GroupWorld world(three(4, {0, 0, 0}, 8), {1, 3}, {2});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  ASSERT_EQ(world.flash.open.size(), 1u);
  world.idle = [&] {
    // Ends the demand, not the prefetch.
    if (!world.flash.open.empty()) world.flash.finish(world.flash.open.size() - 1);
  };
  ASSERT_TRUE(world.pass(1, 0).ok());
  EXPECT_TRUE(world.flash.cancels.empty());
  ASSERT_TRUE(world.pass(2, 0).ok());
  EXPECT_EQ(world.flash.cancels.size(), 1u);
  world.idle = [&] {
    if (!world.flash.open.empty()) world.flash.finish();
  };
  world.expect_nothing_lost();
}

}  // namespace
}  // namespace tierd
