// The editions of a plan whose neurons are stored as bitmaps, with the device memory that computing from them
// needs: the sizes of their neurons, room for counts and for expanded neurons, and a flag that a run sets
// when it finds a malformed neuron.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/agent/message.h"
#include "core/agent/program.h"
#include "tiers/gpu/cuda/bitmap.h"
#include "tiers/gpu/cuda/buffers.h"

namespace tierd::cuda {

class CompressedEditions {
 public:
  // Returns the device memory that a plan needs here.
  static uint64_t device_bytes(const ComputePlan& plan);
  cudaError_t allocate(const ComputePlan& plan);

  bool has(uint32_t edition) const { return edition < editions_.size() && editions_[edition]; }
  // Clears the flag: malformed neurons that are found from here on belong to the next run.
  void begin_run() { malformed_.clear(); }
  // Returns whether the last run found a malformed neuron. Call it after that run has ended.
  bool malformed() const { return malformed_.set(); }

  // Queues the counting of units of an edition. `units` is on the device; its length is at most the number of
  // neurons of the edition, for bundles and columns at most what are_expanded() returns.
  cudaError_t count(uint32_t edition, const std::byte* memory, const Unit* units, uint32_t n_units,
                    cudaStream_t stream, BitmapUnits& counted) const;
  // Queues counting and expansion: the neurons are then at expanded_memory(), listed by expanded_units().
  cudaError_t expand(uint32_t edition, const std::byte* memory, const Unit* units, uint32_t n_units,
                     cudaStream_t stream) const;
  // Returns how many units, from the first on, are expanded together: whole runs.
  static size_t are_expanded(std::span<const Unit> units, const Cut& cut, const Encodings& encodings);
  const std::byte* expanded_memory() const { return expanded_.get(); }
  const Unit* expanded_units() const { return reinterpret_cast<const Unit*>(placed_.get()); }

 private:
  struct Kept {
    Bitmap bitmap;
    uint32_t tile = 0, tiles = 0;
    uint64_t at_once = 0;  // neurons that are counted at once
    uint64_t dense = 0;    // bytes of an expanded neuron; 0: the edition is not expanded
    std::vector<NeuronSize> sizes;
  };
  struct Rooms {
    uint64_t sizes = 0, counts = 0, expanded = 0, placed = 0;  // bytes
  };
  static std::vector<std::optional<Kept>> editions_of(const ComputePlan& plan);
  static Rooms rooms_for(const std::vector<std::optional<Kept>>& editions);

  std::vector<std::optional<Kept>> editions_;
  std::vector<DeviceBytes> sizes_;  // by edition
  DeviceBytes counts_;
  DeviceBytes expanded_;
  DeviceBytes placed_;
  Flag malformed_;
};

}  // namespace tierd::cuda
