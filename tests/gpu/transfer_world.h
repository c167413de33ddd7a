// Device memory and the transfer that moves slots of the host there, on a GPU or on the emulated device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "core/agent/pool.h"
#include "core/base/random.h"
#include "tests/gpu/device_array.h"
#include "tiers/gpu/cuda/registered_memory.h"
#include "tiers/gpu/cuda/transfer.h"
#include "tiers/gpu/team_work.h"

namespace tierd::cuda {

class TransferWorld {
 public:
  static constexpr uint64_t kDeviceBytes = 24 << 20;

  // Observes the pools, which must outlive it.
  explicit TransferWorld(PoolTable& pools) : registered_(pools, 0, "tiers.gpu") {
    EXPECT_EQ(stream_.create(), cudaSuccess);
    EXPECT_EQ(transfer_.create(), cudaSuccess);
    EXPECT_EQ(allocate(kDeviceBytes, there_), cudaSuccess);
  }

  RegisteredMemory& registered() { return registered_; }
  MoveCounts counts() const { return transfer_.counts(); }

  // Moves slots of `bytes` from these units of `source` to places in another order. Returns whether all bytes
  // arrived and all other bytes are unchanged.
  testing::AssertionResult moves(std::span<const std::byte> source, std::vector<uint32_t> from,
                                 uint64_t bytes) {
    return lands(
        source, from, bytes, [&](const std::byte* slot, std::byte* to) { std::memcpy(to, slot, bytes); },
        [&] { return begin(source, bytes); });
  }
  // Like moves(), but moves only the first `lengths` bytes, [units], of each slot.
  testing::AssertionResult moves_parts(std::span<const std::byte> source, const std::vector<uint32_t>& from,
                                       uint64_t bytes, const std::vector<uint32_t>& lengths) {
    auto length = lengths.begin();
    return lands(
        source, from, bytes, [&](const std::byte* slot, std::byte* to) { std::memcpy(to, slot, *length++); },
        [&] {
          transfer_.begin({units_, bytes, lengths}, source.data(), there_.get(), host_);
          return advance();
        });
  }
  // Like moves(), but encodes the neurons.
  testing::AssertionResult encodes(std::span<const std::byte> source, std::vector<uint32_t> from,
                                   const NeuronRecoding& recoding) {
    return lands(
        source, from, recoding.to_bytes(),
        [&](const std::byte* slot, std::byte* to) { recoding.encode_neuron(best_kernels(), slot, to); },
        [&] {
          transfer_.begin(units_, recoding, source.data(), there_.get(), host_);
          return advance();
        });
  }

  // Begins to move the units of the last moves() again. Returns whether the move is over.
  bool begin(std::span<const std::byte> source, uint64_t bytes) {
    transfer_.begin({units_, bytes}, source.data(), there_.get(), host_);
    return advance();
  }

 private:
  bool advance() {
    bool over = false;
    EXPECT_EQ(transfer_.advance(stream_.get(), over), cudaSuccess);
    return over;
  }

  // `make` writes the expected slot. `begin` begins to move units_ and returns whether the move is over.
  template <class Make, class Begin>
  testing::AssertionResult lands(std::span<const std::byte> source, const std::vector<uint32_t>& from,
                                 uint64_t bytes, const Make& make, const Begin& begin) {
    const uint64_t slot = (bytes + kPlaceUnit - 1) / kPlaceUnit + 1;  // in units, with a gap behind it
    if (from.size() * slot * kPlaceUnit > kDeviceBytes) return testing::AssertionFailure() << "no room";
    std::vector<std::byte> expected(kDeviceBytes, std::byte{0x5a});
    units_.clear();
    for (const uint32_t unit : from) {
      const auto place = static_cast<uint32_t>((from.size() - 1 - units_.size()) * slot);
      units_.push_back({unit, place});
      make(source.data() + unit * kPlaceUnit, expected.data() + place * kPlaceUnit);
    }
    EXPECT_EQ(cudaMemset(there_.get(), 0x5a, kDeviceBytes), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (bool over = begin(); !over;) over = advance();
    std::vector<std::byte> found(kDeviceBytes);
    EXPECT_EQ(cudaMemcpy(found.data(), there_.get(), kDeviceBytes, cudaMemcpyDeviceToHost), cudaSuccess);
    if (std::memcmp(found.data(), expected.data(), kDeviceBytes) == 0) return testing::AssertionSuccess();
    const auto differs = std::ranges::mismatch(found, expected);
    return testing::AssertionFailure()
           << "byte " << differs.in1 - found.begin() << " differs, of slots of " << bytes;
  }

  RegisteredMemory registered_;
  Transfer transfer_{registered_};
  Stream stream_;
  DeviceBytes there_;
  TeamWork host_{best_kernels(), std::make_unique<Team>(Team::Options{.workers = 1})};
  std::vector<Unit> units_;
};

// Fills the bytes so that no two neighbourhoods are equal.
inline void fill_with_noise(std::span<std::byte> bytes, uint64_t seed) {
  Random random(seed);
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random.next();
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
}

// Returns units of slots of `bytes` at drawn places in `range`; each border of pieces inside the range has a
// slot across it.
inline std::vector<uint32_t> slots_in(std::span<const std::byte> memory, PageRange range, uint64_t bytes,
                                      size_t n, Random& random) {
  std::vector<uint32_t> units;
  const auto first = reinterpret_cast<uintptr_t>(memory.data());
  constexpr uint64_t kPiece = RegisteredMemory::kPieceBytes;
  for (uint64_t border = (first + range.begin) / kPiece * kPiece + kPiece; border < first + range.end;
       border += kPiece) {
    if (border - first < range.begin + bytes / 2) continue;
    const uint64_t offset = (border - first - bytes / 2) / kPlaceUnit * kPlaceUnit;
    if (offset >= range.begin && offset + bytes <= range.end)
      units.push_back(static_cast<uint32_t>(offset / kPlaceUnit));
  }
  const uint64_t begin = (range.begin + kPlaceUnit - 1) / kPlaceUnit;
  const uint64_t end = (range.end - bytes) / kPlaceUnit + 1;
  while (units.size() < n) units.push_back(static_cast<uint32_t>(begin + random.next() % (end - begin)));
  return units;
}

}  // namespace tierd::cuda
