// Moves that encode neurons anew on their way (kRecode).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/message/pool.h"
#include "tests/dram/pruned_neurons.h"
#include "tiers/dram/dram_agent.h"

namespace tierd {
namespace {

constexpr MemoryId kBelow = 1, kAbove = 2;
constexpr uint32_t kMade = 1;
constexpr uint64_t kArena = 1 << 20, kStaging = 4096;

// An agent whose memory lies over one that holds the neurons in f16; moves make q4_0 of them.
class Above {
 public:
  explicit Above(PrunedNeurons& stored) : below_(stored.memory), n_(neurons(stored.cut)) {
    pools_.add_memory(kBelow, std::as_writable_bytes(std::span(below_)));
    ComputePlan plan = plan_of_pruned(stored, false, 1);
    plan.editions.push_back(Encodings(stored.encodings.size(), Encoding::q4_0));
    plan.made = {std::nullopt, MadeNeurons{.of = 0, .site = 0}};
    DramAgent::Options options;
    options.number = 1;
    options.memory = kAbove;
    options.arena_bytes = kArena;
    options.staging_bytes = kStaging;
    recodings_ = recodings_of(plan);
    auto agent = DramAgent::create(options, pools_, plan, best_kernels(),
                                   std::make_unique<Team>(Team::Options{.workers = 2}));
    EXPECT_TRUE(agent.ok());
    agent_ = std::move(*agent);
  }
  const NeuronRecoding& recoding() const { return *recodings_[kMade]; }
  // All neurons, to places here, a line of which is left between two.
  std::vector<Unit> all_of(const PrunedNeurons& stored) const {
    std::vector<Unit> units;
    uint64_t place = 3;
    for (const Unit& unit : stored.units) {
      units.push_back({unit.place, static_cast<uint32_t>(place)});
      place += divide_up(recoding().to_bytes(), kPlaceUnit) + 1;
    }
    return units;
  }
  Done move(std::span<const Unit> units, uint64_t unit_bytes, MemoryId from = kBelow) {
    std::vector<uint32_t> numbers;
    for (size_t i = 0; i < units.size(); ++i) numbers.push_back(static_cast<uint32_t>(i) % n_);
    return move(units, numbers, unit_bytes, from);
  }
  Done move(std::span<const Unit> units, std::span<const uint32_t> numbers, uint64_t unit_bytes,
            MemoryId from) {
    Message message;
    message.op = Op::move;
    message.flags = kRecode;
    message.from = from;
    message.memory = kAbove;
    message.edition = kMade;
    message.unit_bytes = static_cast<uint32_t>(unit_bytes);
    crossing = agent_->crossing_bytes(message, {.units = units, .neurons = numbers});
    EXPECT_EQ(agent_->submit(message, {.units = units, .neurons = numbers}), Submit::ok);
    agent_->drive();
    Done done;
    EXPECT_EQ(agent_->poll({&done, 1}), 1u);
    return done;
  }
  std::span<const std::byte> memory() const { return pools_.memory(kAbove); }

  uint64_t crossing = 0;

 private:
  std::vector<PrunedNeurons::Line>& below_;
  uint32_t n_;
  PoolTable pools_;
  std::vector<std::optional<NeuronRecoding>> recodings_;
  std::unique_ptr<DramAgent> agent_;
};

TEST(RecodingMoves, MakeTheNeuronsAndTouchNothingElse) {
  for (const Cut& cut :
       {Cut(Bundles{96, 150, true}), Cut(Bundles{544, 64, false}), Cut(Experts{64, 32, 5})}) {
    PrunedNeurons stored(cut, false, Random(4));
    Above above(stored);
    const std::vector<Unit> units = above.all_of(stored);
    const Done done = above.move(units, above.recoding().from_bytes());
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
  refused(above.move(units, bytes - 1), 0);
  refused(above.move(units, bytes, kAbove), 0);
  const uint32_t too_few[] = {0, 1};
  refused(above.move(units, too_few, bytes, kBelow), 0);
  std::vector<Unit> outside = units;
  outside[7].place = static_cast<uint32_t>((kArena + kStaging) / kPlaceUnit - 1);
  const Done done = above.move(outside, bytes);
  refused(done, 7);
  EXPECT_EQ(done.n_done, 7u);
  outside = units;
  outside[19].unit = static_cast<uint32_t>(stored.memory.size() - 1);
  refused(above.move(outside, bytes), 19);
}

}  // namespace
}  // namespace tierd
