#include "tiers/gpu/cuda/compressed_editions.h"

#include <algorithm>

#include "core/base/check.h"
#include "tiers/gpu/cuda/outcome.h"

namespace tierd::cuda {
namespace {

// Dense bytes that are expanded at a time, at least one run, and computed from while in the L2 cache.
constexpr uint64_t kExpandedBytes = 16 << 20;

uint64_t most_expanded(const Cut& cut, const Encodings& encodings) {
  const uint64_t most = std::max<uint64_t>(run_of(cut), kExpandedBytes / neuron_bytes(cut, encodings, 0));
  return std::min<uint64_t>(most, neurons(cut));
}

}  // namespace

std::vector<std::optional<CompressedEditions::Kept>> CompressedEditions::editions_of(
    const ComputePlan& plan) {
  std::vector<std::optional<Kept>> editions(plan.editions.size());
  for (const SiteWork& site : plan.sites) {
    for (const uint32_t e : site.editions) {
      const CompressedNeurons* const compressed = plan.compressed_of(e);
      if (compressed == nullptr || editions[e]) continue;
      const Encodings& encodings = plan.editions[e];
      Kept& kept = editions[e].emplace();
      kept.bitmap = compressed->bitmap;
      uint64_t bits = 0;
      for (uint32_t n = 0; n < neurons(site.cut); ++n) {
        const uint64_t of_neuron = kept.bitmap.bits_bytes(neuron_bytes(site.cut, encodings, n));
        kept.sizes.push_back({compressed->bytes[n], static_cast<uint32_t>(of_neuron)});
        bits = std::max(bits, of_neuron);
      }
      const bool in_groups = is_cut_into<Rows>(site.cut) || is_cut_into<Experts>(site.cut);
      if (!in_groups) {
        kept.dense = neuron_bytes(site.cut, encodings, 0);
        TIERD_CHECK(kept.dense % kPlaceUnit == 0);
      }
      kept.at_once = in_groups ? neurons(site.cut) : most_expanded(site.cut, encodings);
      kept.tile = in_groups ? row_tile(kept.bitmap) : plain_tile(kept.bitmap);
      kept.tiles = static_cast<uint32_t>(divide_up(bits, kept.tile));
    }
  }
  return editions;
}

// Editions share the rooms, because a message has one edition.
CompressedEditions::Rooms CompressedEditions::rooms_for(const std::vector<std::optional<Kept>>& editions) {
  Rooms rooms;
  for (const std::optional<Kept>& kept : editions) {
    if (!kept) continue;
    rooms.sizes += kept->sizes.size() * sizeof(NeuronSize);
    rooms.counts =
        std::max(rooms.counts, kept->at_once * BitmapUnits::count_words(kept->tiles) * sizeof(uint32_t));
    if (kept->dense == 0) continue;
    rooms.expanded = std::max(rooms.expanded, kept->at_once * kept->dense);
    rooms.placed = std::max(rooms.placed, kept->at_once * sizeof(Unit));
  }
  return rooms;
}

uint64_t CompressedEditions::device_bytes(const ComputePlan& plan) {
  const Rooms rooms = rooms_for(editions_of(plan));
  return rooms.sizes + rooms.counts + rooms.expanded + rooms.placed;
}

cudaError_t CompressedEditions::allocate(const ComputePlan& plan) {
  editions_ = editions_of(plan);
  sizes_.resize(editions_.size());
  const Rooms rooms = rooms_for(editions_);
  if (rooms.sizes == 0) return cudaSuccess;
  Outcome outcome;
  for (size_t e = 0; e < editions_.size(); ++e) {
    if (!editions_[e]) continue;
    outcome.then([&] { return upload(std::span<const NeuronSize>(editions_[e]->sizes), sizes_[e]); });
  }
  outcome.then([&] { return cuda::allocate(rooms.counts, counts_); });
  outcome.then([&] { return cuda::allocate(rooms.expanded, expanded_); });
  outcome.then([&] { return cuda::allocate(rooms.placed, placed_); });
  outcome.then([&] { return malformed_.create(); });
  return outcome.error();
}

cudaError_t CompressedEditions::count(uint32_t edition, const std::byte* memory, const Unit* units,
                                      uint32_t n_units, cudaStream_t stream, BitmapUnits& counted) const {
  const Kept& kept = *editions_[edition];
  TIERD_CHECK(n_units <= kept.at_once);
  counted = {.memory = memory,
             .units = units,
             .n_units = n_units,
             .sizes = reinterpret_cast<const NeuronSize*>(sizes_[edition].get()),
             .bitmap = kept.bitmap,
             .tile = kept.tile,
             .tiles = kept.tiles,
             .counts = reinterpret_cast<uint32_t*>(counts_.get()),
             .malformed = malformed_.there()};
  return count_bitmaps(counted, stream);
}

cudaError_t CompressedEditions::expand(uint32_t edition, const std::byte* memory, const Unit* units,
                                       uint32_t n_units, cudaStream_t stream) const {
  BitmapUnits counted;
  const cudaError_t error = count(edition, memory, units, n_units, stream, counted);
  if (error != cudaSuccess) return error;
  return expand_bitmaps(counted,
                        {.memory = expanded_.get(),
                         .units = reinterpret_cast<Unit*>(placed_.get()),
                         .dense_bytes = editions_[edition]->dense},
                        stream);
}

size_t CompressedEditions::are_expanded(std::span<const Unit> units, const Cut& cut,
                                        const Encodings& encodings) {
  const uint32_t run = run_of(cut);
  size_t end = std::min<size_t>(units.size(), most_expanded(cut, encodings));
  const auto inside_a_run = [&] {
    return end < units.size() && units[end].unit / run == units[end - 1].unit / run;
  };
  while (end > 1 && inside_a_run()) --end;
  return end;
}

}  // namespace tierd::cuda
