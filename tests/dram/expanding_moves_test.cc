// Moves that expand bitmaps to dense neurons (kRecode).
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/dram/agent_above.h"

namespace tierd {
namespace {

// All neurons, from their slots below to places here, with a gap of one line between two.
struct Moves {
  std::vector<Unit> units;
  std::vector<uint32_t> neurons;
};
Moves all_of(const PrunedNeurons& compressed) {
  Moves moves;
  uint64_t place = 3;
  for (const Unit& unit : compressed.units) {
    moves.units.push_back({unit.place, static_cast<uint32_t>(place)});
    moves.neurons.push_back(unit.unit);
    place += divide_up(neuron_bytes(compressed.cut, compressed.encodings, unit.unit), kPlaceUnit) + 1;
  }
  return moves;
}

TEST(ExpandingMoves, MakeTheDenseNeuronsAndTouchNothingElse) {
  for (const PrunedCase& tried : pruned_cases()) {
    SCOPED_TRACE(tried.name);
    const PrunedNeurons dense(tried.cut, false, Random(4));
    PrunedNeurons compressed(tried.cut, true, Random(4));
    AgentAbove above(compressed, compressed.encodings);
    const Moves moves = all_of(compressed);
    const Done done = above.move(moves.units, moves.neurons, kPlaceUnit);
    EXPECT_EQ(done.status, DoneStatus::ok);
    EXPECT_EQ(done.n_done, moves.units.size());
    EXPECT_EQ(done.bytes, moves.units.size() * kPlaceUnit) << "what crossed the link";
    std::vector<std::byte> expected(above.memory().size(), std::byte{0});
    for (size_t i = 0; i < moves.units.size(); ++i) {
      std::memcpy(expected.data() + moves.units[i].place * kPlaceUnit,
                  dense.memory[dense.units[i].place].bytes, neuron_bytes(dense.cut, dense.encodings, i));
    }
    EXPECT_EQ(std::memcmp(expected.data(), above.memory().data(), expected.size()), 0);
  }
}

TEST(ExpandingMoves, WhatIsMalformedIsBlamed) {
  PrunedNeurons compressed(Columns{130, 72}, true, Random(4));
  AgentAbove above(compressed, compressed.encodings);
  const Moves moves = all_of(compressed);
  std::memset(compressed.memory[compressed.units[5].place].bytes, 0xff, 8);
  const Done done = above.move(moves.units, moves.neurons, kPlaceUnit);
  EXPECT_EQ(done.status, DoneStatus::corrupt);
  EXPECT_EQ(done.first_bad, 5u);
  EXPECT_EQ(done.n_done, moves.units.size() - 1);
}

TEST(ExpandingMoves, WhatMakesNoSenseIsRefused) {
  PrunedNeurons compressed(Columns{130, 72}, true, Random(4));
  AgentAbove above(compressed, compressed.encodings);
  const Moves moves = all_of(compressed);
  const std::span<const Unit> units = moves.units;
  EXPECT_EQ(above.move(units, std::span(moves.neurons).first(3), 64).status, DoneStatus::invalid_argument);
  const uint32_t no_neuron[] = {130};
  EXPECT_EQ(above.move(units.first(1), no_neuron, 64).status, DoneStatus::invalid_argument);
  const Unit behind[] = {{units[0].unit, (1 << 20) / 64 + 63}};
  EXPECT_EQ(above.move(behind, std::span(moves.neurons).first(1), 64).status, DoneStatus::invalid_argument);
}

}  // namespace
}  // namespace tierd
