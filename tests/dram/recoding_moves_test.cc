// Moves that encode neurons anew (kRecode).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/dram/agent_above.h"

namespace tierd {
namespace {

// An agent whose moves make q4_0 of f16 neurons below.
class Above : public AgentAbove {
 public:
  explicit Above(PrunedNeurons& stored)
      : AgentAbove(stored, Encodings(stored.encodings.size(), Encoding::q4_0)),
        recodings_(recodings_of(plan())),
        n_(neurons(stored.cut)) {}
  const NeuronRecoding& recoding() const { return *recodings_[kMade]; }
  // Returns all neurons with places here, with a gap of one line between two.
  std::vector<Unit> all_of(const PrunedNeurons& stored) const {
    std::vector<Unit> units;
    uint64_t place = 3;
    for (const Unit& unit : stored.units) {
      units.push_back({unit.place, static_cast<uint32_t>(place)});
      place += divide_up(recoding().to_bytes(), kPlaceUnit) + 1;
    }
    return units;
  }
  // Moves the neurons in `units`, numbered from 0.
  Done move_first(std::span<const Unit> units, uint64_t unit_bytes, MemoryId from = kBelow) {
    std::vector<uint32_t> numbers;
    for (size_t i = 0; i < units.size(); ++i) numbers.push_back(static_cast<uint32_t>(i) % n_);
    return move(units, numbers, unit_bytes, from);
  }

 private:
  const std::vector<std::optional<NeuronRecoding>> recodings_;
  const uint32_t n_;
};

TEST(RecodingMoves, MakeTheNeuronsAndTouchNothingElse) {
  for (const Cut& cut :
       {Cut(Bundles{96, 150, true}), Cut(Bundles{544, 64, false}), Cut(Experts{64, 32, 5})}) {
    PrunedNeurons stored(cut, false, Random(4));
    Above above(stored);
    const std::vector<Unit> units = above.all_of(stored);
    const Done done = above.move_first(units, above.recoding().from_bytes());
    EXPECT_EQ(done.status, DoneStatus::ok);
    EXPECT_EQ(done.n_done, units.size());
    EXPECT_EQ(done.bytes, units.size() * above.recoding().to_bytes()) << "what crosses the link";
    EXPECT_EQ(above.crossing, done.bytes);
    std::vector<std::byte> expected(above.memory().size(), std::byte{0});
    for (size_t i = 0; i < units.size(); ++i) {
      above.recoding().encode_neuron(*kernels_by_name("scalar"), stored.memory[stored.units[i].place].bytes,
                                     expected.data() + units[i].place * kPlaceUnit);
    }
    EXPECT_TRUE(std::ranges::equal(expected, above.memory()));
  }
}

TEST(RecodingMoves, WhatMakesNoSenseIsRefused) {
  PrunedNeurons stored(Bundles{96, 20, true}, false, Random(4));
  Above above(stored);
  const std::vector<Unit> units = above.all_of(stored);
  const uint64_t bytes = above.recoding().from_bytes();
  const auto refused = [](const Done& done, uint32_t first_bad) {
    EXPECT_EQ(done.status, DoneStatus::invalid_argument);
    EXPECT_EQ(done.first_bad, first_bad);
  };
  refused(above.move_first(units, bytes - 1), 0);
  refused(above.move_first(units, bytes, Above::kAbove), 0);
  const uint32_t too_few[] = {0, 1};
  refused(above.move(units, too_few, bytes), 0);
  std::vector<Unit> outside = units;
  outside[7].place = static_cast<uint32_t>((Above::kArena + Above::kStaging) / kPlaceUnit - 1);
  const Done done = above.move_first(outside, bytes);
  refused(done, 7);
  EXPECT_EQ(done.n_done, 7u);
  outside = units;
  outside[19].unit = static_cast<uint32_t>(stored.memory.size() - 1);
  refused(above.move_first(outside, bytes), 19);
}

}  // namespace
}  // namespace tierd
