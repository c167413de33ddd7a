#include "tiers/gpu/cuda/transfer.h"

#include <algorithm>

#include "core/base/align.h"

namespace tierd::cuda {

namespace {

constexpr uint64_t kMostPiece = 256 << 10;  // bytes that one of the host's threads copies at a time

}  // namespace

cudaError_t Transfer::create() {
  Outcome outcome;
  outcome.then([&] { return registered_.create(); });
  for (Block& block : blocks_) {
    outcome.then([&] { return allocate(whole_block(), block.here); });
    outcome.then([&] { return allocate(whole_block(), block.there); });
    outcome.then([&] { return block.done.create(); });
  }
  return outcome.error();
}

void Transfer::begin(const MovedSlots& slots, const std::byte* source, std::byte* memory, HostWork& host) {
  slots_ = registered_.begin(slots, source, memory);
  part_ = 0;
  recoding_ = nullptr;
  source_ = source;
  memory_ = memory;
  host_ = &host;
}

void Transfer::begin(std::span<const Unit> units, const NeuronRecoding& recoding, const std::byte* source,
                     std::byte* memory, HostWork& host) {
  registered_.begin({}, source, memory);
  slots_ = {.units = units};
  recoding_ = &recoding;
  piece_ = 0;
  source_ = source;
  memory_ = memory;
  host_ = &host;
}

cudaError_t Transfer::advance(cudaStream_t stream, bool& over) {
  bool read = false;
  over = false;
  const cudaError_t reading = registered_.advance(stream, read);
  if (reading != cudaSuccess) return reading;
  while (under_way_ != 0) {
    const cudaError_t state = cudaEventQuery(blocks_[oldest_].done.get());
    if (state == cudaErrorNotReady) break;
    if (state != cudaSuccess) return state;
    oldest_ = (oldest_ + 1) % kBlocks;
    --under_way_;
  }
  while (under_way_ < kBlocks && !slots_.empty()) {
    const cudaError_t error = fill(blocks_[(oldest_ + under_way_) % kBlocks], stream);
    if (error != cudaSuccess) return error;
    ++under_way_;
  }
  over = read && under_way_ == 0 && slots_.empty();
  return cudaSuccess;
}

bool Transfer::has_room(const Gathered& block) const {
  return block.n < kMostLandings && block.filled < kBlockBytes && !slots_.empty();
}

// Appends a landing at `to`.
void Transfer::add(Gathered& block, uint64_t to, uint64_t bytes) {
  block.landings[block.n++] = {block.filled, to, bytes};
  block.most = std::max(block.most, bytes);
  block.filled = std::min(align_up(block.filled + bytes, kPlaceUnit), kBlockBytes);
  gathered_ += bytes;
}

// A slot that is larger than the rest of a block continues in the next block.
void Transfer::gather(Gathered& block) {
  copies_.clear();
  while (has_room(block)) {
    const Unit& unit = slots_.units.front();
    const uint64_t piece = std::min({slots_.length(0) - part_, kBlockBytes - block.filled, kMostPiece});
    copies_.push_back({source_ + unit.unit * kPlaceUnit + part_, block.data + block.filled, piece});
    add(block, unit.place * kPlaceUnit + part_, piece);
    part_ += piece;
    if (part_ < slots_.length(0)) continue;
    part_ = 0;
    slots_ = slots_.behind_first();
  }
  host_->copy(copies_);
}

// A piece of a neuron that does not fit into the rest of a block goes into the next block.
void Transfer::encode(Gathered& block) {
  encodes_.clear();
  while (has_room(block)) {
    const Unit& unit = slots_.units.front();
    const NeuronRecoding::Piece piece = recoding_->piece(piece_);
    if (block.filled + piece.to_bytes > kBlockBytes) break;
    encodes_.push_back(
        {recoding_, piece_, source_ + unit.unit * kPlaceUnit + piece.from, block.data + block.filled});
    add(block, unit.place * kPlaceUnit + piece.to, piece.to_bytes);
    if (++piece_ < recoding_->pieces()) continue;
    piece_ = 0;
    slots_ = slots_.behind_first();
  }
  host_->encode(encodes_);
}

cudaError_t Transfer::fill(Block& block, cudaStream_t stream) {
  Gathered gathered{.landings = reinterpret_cast<Landing*>(block.here.get()),
                    .data = block.here.get() + kMostLandings * sizeof(Landing)};
  recoding_ != nullptr ? encode(gathered) : gather(gathered);
  Outcome outcome;
  const uint64_t first = kMostLandings * sizeof(Landing);
  outcome.then([&] {
    return cudaMemcpyAsync(block.there.get(), block.here.get(), gathered.n * sizeof(Landing),
                           cudaMemcpyHostToDevice, stream);
  });
  outcome.then([&] {
    return cudaMemcpyAsync(block.there.get() + first, gathered.data, gathered.filled, cudaMemcpyHostToDevice,
                           stream);
  });
  outcome.then([&] {
    return land(reinterpret_cast<const Landing*>(block.there.get()), gathered.n, gathered.most,
                block.there.get() + first, memory_, stream);
  });
  outcome.then([&] { return cudaEventRecord(block.done.get(), stream); });
  return outcome.error();
}

}  // namespace tierd::cuda
