#include "core/kernel/placement.h"

#include <gtest/gtest.h>

namespace tierd {
namespace {

// The first site shares the bytes of the last.
std::vector<Site> sites() {
  std::vector<Site> sites(3);
  sites[0].domain = 2;
  sites[1].domain = 1;
  sites[2].domain = 2;
  sites[0].n = sites[2].n = 4;
  sites[1].n = 3;
  return sites;
}

TEST(Placement, EverythingIsAtHomeWithTheFirstUnitUntilItIsPlaced) {
  const Placement placement(2);
  EXPECT_EQ(placement.home(2, 3), 0);
  EXPECT_EQ(placement.at_home(sites(), 0), (std::vector<uint32_t>{0, 3, 4}));
  EXPECT_EQ(placement.at_home(sites(), 1), (std::vector<uint32_t>{0, 0, 0}));
}

TEST(Placement, CountsWhatIsAtHomeInEachCanonicalSite) {
  Placement placement(2);
  placement.place(2, {1, 0, 1, 1});
  EXPECT_EQ(placement.home(2, 1), 0);
  EXPECT_EQ(placement.home(2, 2), 1);
  EXPECT_EQ(placement.at_home(sites(), 0), (std::vector<uint32_t>{0, 3, 1}));
  EXPECT_EQ(placement.at_home(sites(), 1), (std::vector<uint32_t>{0, 0, 3}));
}

}  // namespace
}  // namespace tierd
