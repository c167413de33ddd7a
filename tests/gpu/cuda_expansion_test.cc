// Moves that expand bitmaps on the device write the dense neurons' bytes into their slots and nothing else,
// in however many groups the neurons land.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/agent/pool.h"
#include "tests/dram/pruned_neurons.h"
#include "tests/gpu/device_array.h"
#include "tiers/gpu/cuda/expansion.h"
#include "tiers/gpu/cuda/registered_memory.h"
#include "tiers/gpu/team_work.h"

namespace tierd::cuda {
namespace {

constexpr uint32_t kMade = 1;

class CudaExpansion : public KernelTest {
 protected:
  // Expands these units of the host's memory into `memory`, through rooms of `room` bytes. Returns whether
  // the bitmaps are well formed.
  bool expand(const PrunedNeurons& compressed, std::span<const Unit> units, uint64_t room,
              const DeviceArray<std::byte>& memory) {
    ComputePlan plan = plan_of_pruned(compressed, false, 1);
    plan.editions.push_back(compressed.encodings);
    plan.made = {std::nullopt, MadeNeurons{.of = 0, .site = 0}};
    Expansion expansion(room);
    PoolTable pools;
    RegisteredMemory registered(pools, 0, "tiers.gpu");  // nothing is registered: slots go through blocks
    Transfer transfer(registered);
    EXPECT_EQ(expansion.allocate(plan), cudaSuccess);
    EXPECT_EQ(transfer.create(), cudaSuccess);
    std::vector<uint32_t> neurons;
    std::vector<Unit> moved;
    uint64_t most = 0;
    for (const Unit& unit : units) {
      neurons.push_back(unit.unit);
      moved.push_back({compressed.units[unit.unit].place, unit.place});
      most = std::max(most, expansion.compressed_bytes(kMade, unit.unit));
    }
    TeamWork host(best_kernels(), std::make_unique<Team>(Team::Options{.workers = 1}));
    EXPECT_EQ(expansion.begin({.edition = kMade,
                               .units = moved,
                               .neurons = neurons,
                               .bytes = align_up(most, kPlaceUnit),
                               .source = compressed.data(),
                               .memory = memory.get()},
                              host, stream()),
              cudaSuccess);
    bool queued = false;
    while (!queued) {
      const cudaError_t error = expansion.advance(transfer, stream(), queued);
      EXPECT_EQ(error, cudaSuccess);
      if (error != cudaSuccess) return false;
    }
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return !expansion.malformed();
  }
};

// Returns a drawn selection of the neurons in a drawn order, each with a slot larger than the largest neuron.
std::vector<Unit> drawn(const PrunedNeurons& compressed, uint64_t slot, Random& random) {
  std::vector<Unit> units;
  for (const Unit& unit : compressed.units) {
    if (random.below(4) != 0) units.push_back({unit.unit, 0});
  }
  for (size_t i = units.size(); i > 1; --i) std::swap(units[i - 1], units[random.below(i)]);
  for (size_t i = 0; i < units.size(); ++i) units[i].place = static_cast<uint32_t>(i * slot / kPlaceUnit);
  return units;
}

TEST_F(CudaExpansion, ExpandsIntoSlots) {
  for (const PrunedCase& tried : pruned_cases()) {
    const PrunedNeurons dense(tried.cut, false, Random(4));
    PrunedNeurons compressed(tried.cut, true, Random(4));
    // The bytes behind the last neuron are read with its slot.
    compressed.memory.resize(compressed.memory.size() + 1024);
    const uint64_t slot = align_up(neuron_bytes(tried.cut, dense.encodings, 0), kPlaceUnit) + kPlaceUnit;
    for (const uint64_t room : {uint64_t{64}, 3 * slot, Expansion::kLandedBytes}) {
      SCOPED_TRACE(std::string(tried.name) + ", room of " + std::to_string(room));
      const std::vector<Unit> units = drawn(compressed, slot, random_);
      std::vector<std::byte> expected(units.size() * slot, std::byte{0xEE});
      const DeviceArray<std::byte> memory(expected);
      for (const Unit& unit : units) {
        std::memcpy(expected.data() + unit.place * kPlaceUnit,
                    dense.memory[dense.units[unit.unit].place].bytes,
                    neuron_bytes(tried.cut, dense.encodings, unit.unit));
      }
      ASSERT_TRUE(expand(compressed, units, room, memory));
      EXPECT_EQ(memory.read(), expected);
    }
  }
}

TEST_F(CudaExpansion, FindsWhatIsMalformed) {
  PrunedNeurons compressed(Columns{130, 72}, true, Random(4));
  const DeviceArray<std::byte> memory(std::vector<std::byte>(130 * 192));
  const std::vector<Unit> units = drawn(compressed, 192, random_);
  ASSERT_TRUE(expand(compressed, units, 1024, memory));
  std::memset(compressed.memory[compressed.units[units[units.size() / 2].unit].place].bytes, 0xff, 8);
  EXPECT_FALSE(expand(compressed, units, 1024, memory));
}

}  // namespace
}  // namespace tierd::cuda
