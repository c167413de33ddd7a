// Neurons whose bytes lie in several extents: one message brings them all, each piece to its place in the
// slot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

using testing::HasSubstr;

TEST(Pieces, AreReadWithTheirNeuron) {
  ScriptedWorld world({.neurons = {2, 6}, .slots = {0, 0}, .neurons_per_block = 2, .pieces = 2});
  ASSERT_TRUE(world.pass(1, 0).ok());
  EXPECT_EQ(world.reads(), "[4,10,5,11][6,12,7,13][8,14,9,15]");
  world.expect_whole(1, 0, {0, 1, 2, 3, 4, 5});
  world.expect_nothing_lost();
}

// A message lists six units at most: two neurons of three pieces.
TEST(Pieces, FillNoMoreThanAMessage) {
  ScriptedWorld world({.neurons = {6}, .slots = {6}, .neurons_per_block = 8, .pieces = 3});
  world.script.admit = keep_what_fits();
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.reads(), "[0,6,12,1,7,13][2,8,14,3,9,15][4,10,16,5,11,17]");
  world.expect_whole(0, 0, {0, 1, 2, 3, 4, 5});
  // They stay: nothing is read again.
  ASSERT_TRUE(world.pass(0, 1).ok());
  EXPECT_EQ(world.flash.started.size(), 3u);
  world.expect_whole(0, 1, {0, 1, 2, 3, 4, 5});
  world.expect_nothing_lost();
}

TEST(Pieces, TheBadOneIsNamed) {
  for (uint32_t bad = 0; bad < 4; ++bad) {
    ScriptedWorld world({.neurons = {4}, .slots = {0}, .neurons_per_block = 2, .attempts = 1, .pieces = 2});
    world.idle = [&] { world.flash.finish(0, DoneStatus::corrupt, bad); };
    const Status status = world.pass(0, 0);
    ASSERT_FALSE(status.ok());
    // Neuron 0 is extents 0 and 4, neuron 1 is 1 and 5.
    const uint32_t extents[] = {0, 4, 1, 5};
    EXPECT_THAT(status.error().line(), HasSubstr("extent " + std::to_string(extents[bad]) + ":"));
  }
}

}  // namespace
}  // namespace tierd
