#include "tiers/gpu/cuda/registered_move.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tiers/gpu/cuda/outcome.h"

namespace tierd::cuda {

MovedSlots RegisteredMove::begin(const MovedSlots& slots, const std::byte* source, std::byte* memory) {
  memory_ = memory;
  fetches_.clear();
  others_.clear();
  other_lengths_.clear();
  for (size_t i = 0; i < slots.units.size(); ++i) {
    const Unit& unit = slots.units[i];
    if (registered_.reach(source + unit.unit * kPlaceUnit, slots.length(i), unit.place * kPlaceUnit,
                          fetches_))
      continue;
    others_.push_back(unit);
    other_lengths_.push_back(static_cast<uint32_t>(slots.length(i)));
  }
  // Without pinned memory for the list, all slots are gathered instead.
  if (list_.hold(fetches_.size() * sizeof(Fetch)) != cudaSuccess) {
    (void)cudaGetLastError();
    fetches_.clear();
    return slots;
  }
  return {others_, slots.bytes, other_lengths_};
}

cudaError_t RegisteredMove::advance(cudaStream_t stream, bool& over) {
  over = false;
  if (!fetches_.empty()) {
    const cudaError_t error = queue(stream);
    if (error != cudaSuccess) return error;
  }
  if (under_way_) {
    const cudaError_t state = cudaEventQuery(over_.get());
    if (state == cudaErrorNotReady) return cudaSuccess;
    if (state != cudaSuccess) return state;
    forget();
  }
  over = true;
  return cudaSuccess;
}

cudaError_t RegisteredMove::queue(cudaStream_t stream) {
  uint64_t most = 0, all = 0;
  for (const Fetch& one : fetches_) {
    most = std::max(most, one.bytes);
    all += one.bytes;
  }
  std::memcpy(list_.data(), fetches_.data(), fetches_.size() * sizeof(Fetch));
  const cudaError_t error = fetch(reinterpret_cast<const Fetch*>(list_.data()),
                                  static_cast<uint32_t>(fetches_.size()), most, memory_, stream);
  fetches_.clear();
  if (error != cudaSuccess) return error;
  registered_.begin_reading();
  under_way_ = true;
  bytes_ += all;
  return cudaEventRecord(over_.get(), stream);
}

void RegisteredMove::forget() {
  if (std::exchange(under_way_, false)) registered_.end_reading();
}

}  // namespace tierd::cuda
