// What a message refers to, brought to the device with one copy: put together in pinned memory first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/message/message.h"
#include "tiers/gpu/cuda/buffers.h"
#include "tiers/gpu/cuda/outcome.h"

namespace tierd::cuda {

// The lists of a run on the device. They stay until the next run is begun.
struct RunLists {
  struct Taken {
    const float* values = nullptr;      // [rows x columns of the take]
    const uint32_t* neurons = nullptr;  // of the take, or none
  };
  const RowInfo* rows = nullptr;
  const Unit* units = nullptr;
  const uint64_t* masks = nullptr;   // or none
  const uint32_t* begins = nullptr;  // of runs of neurons, and the end of the last
  uint32_t n_runs = 0;
  std::vector<Taken> takes = {};
};

class MessageLists {
 public:
  // Queues the copy. `run`: neurons that are added together, 1 where none are; `n_masks`: words. What an
  // earlier call has queued is over.
  cudaError_t send(const Message& message, const Payload& payload, uint32_t run, cudaStream_t stream) {
    begins_.clear();
    if (run > 1) find_runs(payload.units, run);
    uint64_t floats = 0, neurons = 0;
    for (const Take& take : payload.takes) {
      floats += align_up(uint64_t{message.rows} * take.columns, kPlaceUnit);
      neurons += align_up(take.neurons.size(), kPlaceUnit);
    }
    const uint64_t most = payload.rows.size_bytes() + payload.units.size_bytes() +
                          payload.masks.size_bytes() + begins_.size() * sizeof(uint32_t) +
                          (floats + neurons) * 4 + 4 * kPlaceUnit;
    Outcome outcome;
    outcome.then([&] { return here_.hold(most); });
    outcome.then([&] { return there_.hold(most); });
    if (!outcome.ok()) return outcome.error();
    size_ = 0;
    lists_.rows = add(payload.rows);
    lists_.units = add(payload.units);
    lists_.masks = payload.masks.empty() ? nullptr : add(payload.masks);
    lists_.begins = add(std::span<const uint32_t>(begins_));
    lists_.n_runs = begins_.empty() ? 0 : static_cast<uint32_t>(begins_.size() - 1);
    lists_.takes.clear();
    for (const Take& take : payload.takes) {
      RunLists::Taken& taken = lists_.takes.emplace_back();
      auto* const values = reinterpret_cast<float*>(here_.data() + size_);
      for (uint64_t i = 0; i < message.rows; ++i)
        std::memcpy(values + i * take.columns, take.values + i * take.stride + take.first,
                    take.columns * sizeof(float));
      taken.values = reinterpret_cast<const float*>(there_.data() + size_);
      size_ = align_up(size_ + uint64_t{message.rows} * take.columns * sizeof(float), kPlaceUnit);
      taken.neurons = add(take.neurons);
    }
    TIERD_CHECK(size_ <= most);
    if (size_ == 0) return cudaSuccess;
    return cudaMemcpyAsync(there_.data(), here_.data(), size_, cudaMemcpyHostToDevice, stream);
  }
  const RunLists& lists() const { return lists_; }

 private:
  // A run: neurons whose numbers have the same quotient.
  void find_runs(std::span<const Unit> units, uint32_t run) {
    for (uint32_t k = 0; k < units.size(); ++k) {
      if (k == 0 || units[k].unit / run != units[k - 1].unit / run) begins_.push_back(k);
    }
    begins_.push_back(static_cast<uint32_t>(units.size()));
  }
  template <class T>
  const T* add(std::span<const T> list) {
    if (list.empty()) return nullptr;
    std::memcpy(here_.data() + size_, list.data(), list.size_bytes());
    const auto* const there = reinterpret_cast<const T*>(there_.data() + size_);
    size_ = align_up(size_ + list.size_bytes(), kPlaceUnit);
    return there;
  }

  Growing<PinnedBytes> here_;
  Growing<DeviceBytes> there_;
  uint64_t size_ = 0;
  std::vector<uint32_t> begins_;
  RunLists lists_;
};

}  // namespace tierd::cuda
