#include "tiers/gpu/cuda/expansion.h"

#include <algorithm>

#include "core/base/check.h"
#include "tiers/gpu/cuda/outcome.h"

namespace tierd::cuda {
namespace {

uint64_t room_of(const NeuronSize& size) {
  return align_up(size.bytes, kPlaceUnit);
}

}  // namespace

std::vector<std::optional<Expansion::Kept>> Expansion::editions_of(const ComputePlan& plan,
                                                                   uint64_t landed_bytes) {
  std::vector<std::optional<Kept>> editions(plan.made.size());
  for (uint32_t e = 0; e < editions.size(); ++e) {
    const MadeNeurons* const expanded = plan.expanded_of(e);
    if (expanded == nullptr) continue;
    const CompressedNeurons& compressed = *plan.compressed_of(expanded->of);
    const Cut& cut = plan.sites[expanded->site].cut;
    Kept& kept = editions[e].emplace();
    kept.bitmap = compressed.bitmap;
    NeuronSize most;
    for (uint32_t n = 0; n < tierd::neurons(cut); ++n) {
      const uint64_t dense = neuron_bytes(cut, plan.editions[e], n);
      const uint64_t bits = kept.bitmap.bits_bytes(dense);
      TIERD_CHECK(dense % 16 == 0 && dense == bits * 8 * kept.bitmap.element_bytes);  // the kernel writes 16
                                                                                      // bytes at a time
      kept.sizes.push_back({compressed.bytes[n], static_cast<uint32_t>(bits)});
      most.bytes = std::max(most.bytes, kept.sizes.back().bytes);
      most.bits = std::max(most.bits, kept.sizes.back().bits);
    }
    kept.tiles = static_cast<uint32_t>(divide_up(most.bits, plain_tile(kept.bitmap)));
    kept.at_once = std::clamp<uint64_t>(landed_bytes / room_of(most), 1, kept.sizes.size());
  }
  return editions;
}

// Editions share the rooms, because a message has one edition.
Expansion::Rooms Expansion::rooms_for(const std::vector<std::optional<Kept>>& editions,
                                      uint64_t landed_bytes) {
  Rooms rooms;
  for (const std::optional<Kept>& kept : editions) {
    if (!kept) continue;
    rooms.sizes += kept->sizes.size() * sizeof(NeuronSize);
    rooms.counts =
        std::max(rooms.counts, kept->at_once * BitmapUnits::count_words(kept->tiles) * sizeof(uint32_t));
    for (const NeuronSize& size : kept->sizes) rooms.landed = std::max(rooms.landed, room_of(size));
  }
  if (rooms.landed != 0) rooms.landed = std::max(rooms.landed, landed_bytes);
  return rooms;
}

uint64_t Expansion::device_bytes(const ComputePlan& plan) {
  const Rooms rooms = rooms_for(editions_of(plan, kLandedBytes), kLandedBytes);
  return rooms.sizes + rooms.counts + rooms.landed;
}

cudaError_t Expansion::allocate(const ComputePlan& plan) {
  editions_ = editions_of(plan, at_least_);
  sizes_.resize(editions_.size());
  const Rooms rooms = rooms_for(editions_, at_least_);
  if (rooms.sizes == 0) return cudaSuccess;
  Outcome outcome;
  for (size_t e = 0; e < editions_.size(); ++e) {
    if (!editions_[e]) continue;
    outcome.then([&] { return upload(std::span<const NeuronSize>(editions_[e]->sizes), sizes_[e]); });
  }
  outcome.then([&] { return cuda::allocate(rooms.counts, counts_); });
  outcome.then([&] { return cuda::allocate(rooms.landed, landed_); });
  outcome.then([&] { return malformed_.create(); });
  return outcome.error();
}

uint64_t Expansion::compressed_bytes(uint32_t edition, uint32_t neuron) const {
  return editions_[edition]->sizes[neuron].bytes;
}
uint64_t Expansion::crossing_bytes(uint32_t edition, uint32_t neuron) const {
  return room_of(editions_[edition]->sizes[neuron]);
}
uint64_t Expansion::dense_bytes(uint32_t edition, uint32_t neuron) const {
  const Kept& kept = *editions_[edition];
  return uint64_t{kept.sizes[neuron].bits} * 8 * kept.bitmap.element_bytes;
}

cudaError_t Expansion::begin(const Move& move, HostWork& host, cudaStream_t stream) {
  move_ = move;
  host_ = &host;
  malformed_.clear();
  next_ = group_ = 0;
  const size_t n = move.units.size();
  Outcome outcome;
  outcome.then([&] { return lists_here_.hold(2 * n * sizeof(Unit)); });
  outcome.then([&] { return lists_there_.hold(2 * n * sizeof(Unit)); });
  if (!outcome.ok()) return outcome.error();
  auto* const lists = reinterpret_cast<Unit*>(lists_here_.data());
  const uint64_t at_once = editions_[move.edition]->at_once;
  for (size_t i = 0; i < n; ++i) {
    const NeuronSize& size = editions_[move.edition]->sizes[move.neurons[i]];
    TIERD_CHECK(size.bytes <= move.bytes);
    lists[n + i] = {move.neurons[i], move.units[i].place};
  }
  // The room has slots as large as the edition's largest neuron in the host's memory.
  uint64_t largest = 0;
  for (const NeuronSize& size : editions_[move.edition]->sizes) largest = std::max(largest, room_of(size));
  for (size_t i = 0; i < n; ++i)
    lists[i] = {move.neurons[i], static_cast<uint32_t>(i % at_once * largest / kPlaceUnit)};
  outcome.then([&] {
    return cudaMemcpyAsync(lists_there_.data(), lists, 2 * n * sizeof(Unit), cudaMemcpyHostToDevice, stream);
  });
  return outcome.error();
}

void Expansion::begin_group(Transfer& transfer) {
  const auto* const rooms = reinterpret_cast<const Unit*>(lists_here_.data());
  group_ = next_;
  expanded_ = false;
  next_ = std::min<size_t>(move_.units.size(), group_ + editions_[move_.edition]->at_once);
  landings_.clear();
  landing_lengths_.clear();
  for (size_t i = group_; i < next_; ++i) {
    landings_.push_back({move_.units[i].unit, rooms[i].place});
    landing_lengths_.push_back(static_cast<uint32_t>(crossing_bytes(move_.edition, move_.neurons[i])));
  }
  transfer.begin({landings_, 0, landing_lengths_}, move_.source, landed_.get(), *host_);
}

cudaError_t Expansion::expand_group(cudaStream_t stream) {
  expanded_ = true;
  const Kept& kept = *editions_[move_.edition];
  const auto* const lists = reinterpret_cast<const Unit*>(lists_there_.data());
  const BitmapUnits landed = {.memory = landed_.get(),
                              .units = lists + group_,
                              .n_units = static_cast<uint32_t>(next_ - group_),
                              .sizes = reinterpret_cast<const NeuronSize*>(sizes_[move_.edition].get()),
                              .bitmap = kept.bitmap,
                              .tile = plain_tile(kept.bitmap),
                              .tiles = kept.tiles,
                              .counts = reinterpret_cast<uint32_t*>(counts_.get()),
                              .malformed = malformed_.there()};
  const cudaError_t error = count_bitmaps(landed, stream);
  if (error != cudaSuccess) return error;
  return expand_bitmaps(
      landed,
      {.memory = move_.memory,
       .units = nullptr,
       .dense_bytes = uint64_t{kept.tiles} * plain_tile(kept.bitmap) * 8 * kept.bitmap.element_bytes,
       .places = lists + move_.units.size() + group_},
      stream);
}

// A group is expanded after its last byte has landed and before the next group overwrites the room.
cudaError_t Expansion::advance(Transfer& transfer, cudaStream_t stream, bool& queued) {
  queued = false;
  while (true) {
    if (next_ == group_) {
      if (next_ == move_.units.size()) break;
      begin_group(transfer);
    }
    bool over = false;
    const cudaError_t landing = transfer.advance(stream, over);
    if (landing != cudaSuccess) return landing;
    if (!expanded_ && transfer.all_begun()) {
      const cudaError_t error = expand_group(stream);
      if (error != cudaSuccess) return error;
    }
    if (!over) return cudaSuccess;
    group_ = next_;
  }
  queued = true;
  return cudaSuccess;
}

void Expansion::stop(Transfer& transfer) {
  transfer.stop();
  expanded_ = true;  // the group under way lands but is not expanded
  if (next_ == group_) group_ = move_.units.size();
  next_ = move_.units.size();
}

}  // namespace tierd::cuda
