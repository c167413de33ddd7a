#include "tiers/gpu/cuda/transfer.h"

#include <algorithm>

#include "core/base/align.h"

namespace tierd::cuda {

namespace {

constexpr uint64_t kMostPiece = 256 << 10;  // that one of the host's threads copies at a time

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

void Transfer::begin(std::span<const Unit> units, uint64_t bytes, const std::byte* source, std::byte* memory,
                     HostWork& host) {
  units_ = bytes == 0 ? std::span<const Unit>() : registered_.begin(units, bytes, source, memory);
  bytes_ = bytes;
  part_ = 0;
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
  while (under_way_ < kBlocks && !units_.empty()) {
    const cudaError_t error = fill(blocks_[(oldest_ + under_way_) % kBlocks], stream);
    if (error != cudaSuccess) return error;
    ++under_way_;
  }
  over = read && under_way_ == 0 && units_.empty();
  return cudaSuccess;
}

// A slot that is larger than what is left of a block goes on in the next one.
cudaError_t Transfer::fill(Block& block, cudaStream_t stream) {
  auto* const landings = reinterpret_cast<Landing*>(block.here.get());
  std::byte* const data = block.here.get() + kMostLandings * sizeof(Landing);
  uint32_t n = 0;
  uint64_t filled = 0, most = 0;
  copies_.clear();
  while (n < kMostLandings && filled < kBlockBytes && !units_.empty()) {
    const Unit& unit = units_.front();
    const uint64_t piece = std::min({bytes_ - part_, kBlockBytes - filled, kMostPiece});
    copies_.push_back({source_ + unit.unit * kPlaceUnit + part_, data + filled, piece});
    landings[n++] = {filled, unit.place * kPlaceUnit + part_, piece};
    most = std::max(most, piece);
    filled = std::min(align_up(filled + piece, kPlaceUnit), kBlockBytes);
    part_ += piece;
    gathered_ += piece;
    if (part_ < bytes_) continue;
    part_ = 0;
    units_ = units_.subspan(1);
  }
  host_->copy(copies_);
  Outcome outcome;
  const uint64_t first = kMostLandings * sizeof(Landing);
  outcome.then([&] {
    return cudaMemcpyAsync(block.there.get(), block.here.get(), n * sizeof(Landing), cudaMemcpyHostToDevice,
                           stream);
  });
  outcome.then([&] {
    return cudaMemcpyAsync(block.there.get() + first, data, filled, cudaMemcpyHostToDevice, stream);
  });
  outcome.then([&] {
    return land(reinterpret_cast<const Landing*>(block.there.get()), n, most, block.there.get() + first,
                memory_, stream);
  });
  outcome.then([&] { return cudaEventRecord(block.done.get(), stream); });
  return outcome.error();
}

}  // namespace tierd::cuda
