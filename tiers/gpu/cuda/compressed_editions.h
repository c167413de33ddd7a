// The editions of a plan whose neurons are kept as bitmaps, with what the device needs to compute from them:
// the sizes of their neurons, room for counts and for neurons that are expanded, and a word that says which
// run has found one malformed.
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
  // Memory of the device that a plan takes here.
  static uint64_t device_bytes(const ComputePlan& plan);
  cudaError_t allocate(const ComputePlan& plan);

  bool has(uint32_t edition) const { return edition < editions_.size() && editions_[edition]; }
  // From here on what is found malformed is the next run's.
  void begin_run() { malformed_.clear(); }
  // Whether a neuron of the last run was, when that is over.
  bool malformed() const { return malformed_.set(); }

  // Queues the counting of units of an edition; `units` is on the device, and has at most as many as the
  // edition has neurons, of bundles and columns as many as are_expanded() says.
  cudaError_t count(uint32_t edition, const std::byte* memory, const Unit* units, uint32_t n_units,
                    cudaStream_t stream, BitmapUnits& counted) const;
  // The same, and of expanding them: they are at expanded_memory() then, and said by expanded_units().
  cudaError_t expand(uint32_t edition, const std::byte* memory, const Unit* units, uint32_t n_units,
                     cudaStream_t stream) const;
  // How many units from the first on are expanded together: whole runs.
  static size_t are_expanded(std::span<const Unit> units, const Cut& cut, const Encodings& encodings);
  const std::byte* expanded_memory() const { return expanded_.get(); }
  const Unit* expanded_units() const { return reinterpret_cast<const Unit*>(placed_.get()); }

 private:
  struct Kept {
    Bitmap bitmap;
    uint32_t tile = 0, tiles = 0;
    uint64_t at_once = 0;  // neurons that are counted
    uint64_t dense = 0;    // of one that is expanded; 0: they are not
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
