#include "core/kernel/placement.h"

#include <gtest/gtest.h>

namespace tierd {
namespace {

std::vector<Edition> editions_of_3_and_4() {
  std::vector<Edition> editions(2);
  editions[0].n = 3;
  editions[1].n = 4;
  return editions;
}

TEST(Placement, EverythingIsAtHomeWithTheFirstUnitUntilItIsPlaced) {
  const Placement placement(2);
  EXPECT_EQ(placement.home(1, 3), 0);
  EXPECT_EQ(placement.at_home(editions_of_3_and_4(), Topology::over_store(2), 1),
            (std::vector<uint32_t>{3, 4}));
  EXPECT_EQ(placement.at_home(editions_of_3_and_4(), Topology::over_store(2), 2),
            (std::vector<uint32_t>{0, 0}));
}

TEST(Placement, CountsWhatIsAtHomeInEachEdition) {
  Placement placement(2);
  placement.place(1, {1, 0, 1, 1});
  EXPECT_EQ(placement.home(1, 1), 0);
  EXPECT_EQ(placement.home(1, 2), 1);
  EXPECT_EQ(placement.at_home(editions_of_3_and_4(), Topology::over_store(2), 1),
            (std::vector<uint32_t>{3, 1}));
  EXPECT_EQ(placement.at_home(editions_of_3_and_4(), Topology::over_store(2), 2),
            (std::vector<uint32_t>{0, 3}));
}

// A memory under another one keeps the neurons whose home is the upper memory's unit.
TEST(Placement, AMemoryIsHomeToTheUnitsThatItFeeds) {
  Topology topology = Topology::over_store(3);
  topology.memory(3).over = 2;
  topology.units = {{.memory = 1}, {.memory = 3}};
  Placement placement(2);
  placement.place(1, {1, 0, 1, 1});
  EXPECT_EQ(placement.at_home(editions_of_3_and_4(), topology, 1), (std::vector<uint32_t>{3, 1}));
  EXPECT_EQ(placement.at_home(editions_of_3_and_4(), topology, 2), (std::vector<uint32_t>{0, 3}));
  EXPECT_EQ(placement.at_home(editions_of_3_and_4(), topology, 3), (std::vector<uint32_t>{0, 3}));
}

}  // namespace
}  // namespace tierd
