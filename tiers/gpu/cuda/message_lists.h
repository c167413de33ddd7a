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
  // Queues what has to be copied. `run`: neurons that are added together, 1 where none are. What an earlier
  // call has queued is over.
  cudaError_t send(const Message& message, const Payload& payload, uint32_t run, cudaStream_t stream) {
    begins_.clear();
    if (run > 1) find_runs(payload.units, run);
    uint64_t taken = 0;
    for (const Take& take : payload.takes) {
      taken += align_up(uint64_t{message.rows} * take.columns * sizeof(float), kPlaceUnit);
      taken += align_up(take.neurons.size_bytes(), kPlaceUnit);
    }
    const uint64_t of_rows = align_up(payload.rows.size_bytes(), kPlaceUnit);
    const uint64_t of_site = align_up(payload.units.size_bytes(), kPlaceUnit) +
                             align_up(payload.masks.size_bytes(), kPlaceUnit) +
                             align_up(begins_.size() * sizeof(uint32_t), kPlaceUnit) + taken;
    if (message.site >= of_sites_.size()) of_sites_.resize(message.site + 1u);
    Kept& of_this = of_sites_[message.site];
    Outcome outcome;
    outcome.then([&] { return here_.hold(of_rows + of_site); });
    outcome.then([&] { return of_rows_.hold(of_rows); });
    outcome.then([&] { return of_this.hold(of_site); });
    if (!outcome.ok()) return outcome.error();

    begin(0, of_rows_);
    lists_.rows = add(payload.rows);
    outcome.then([&] { return copy(stream); });
    begin(of_rows, of_this);
    lists_.units = add(payload.units);
    lists_.masks = add(payload.masks);
    lists_.begins = add(std::span<const uint32_t>(begins_));
    lists_.n_runs = begins_.empty() ? 0 : static_cast<uint32_t>(begins_.size() - 1);
    lists_.takes.clear();
    for (const Take& take : payload.takes) {
      RunLists::Taken& of_take = lists_.takes.emplace_back();
      auto* const values = reinterpret_cast<float*>(here_.data() + at_);
      for (uint64_t i = 0; i < message.rows; ++i)
        std::memcpy(values + i * take.columns, take.values + i * take.stride + take.first,
                    take.columns * sizeof(float));
      of_take.values = reinterpret_cast<const float*>(there());
      at_ = align_up(at_ + uint64_t{message.rows} * take.columns * sizeof(float), kPlaceUnit);
      of_take.neurons = add(take.neurons);
    }
    TIERD_CHECK(at_ <= of_rows + of_site);
    same_site_ = true;
    outcome.then([&] { return copy(stream); });
    return outcome.error();
  }
  const RunLists& lists() const { return lists_; }
  // Whether the lists of the last message, but for its rows, were on the device already, byte for byte and in
  // the same place, from the message of its site before.
  bool same_site() const { return same_site_; }

 private:
  // What the device has already is not copied again: the neurons of a site that is resident are the same in
  // every step, the rows the same in all sites of a step.
  struct Kept {
    Growing<DeviceBytes> there;
    std::vector<std::byte> sent;
    cudaError_t hold(uint64_t bytes) {
      const std::byte* const before = there.data();
      const cudaError_t error = there.hold(bytes);
      if (there.data() != before) sent.clear();
      return error;
    }
  };

  // A run: neurons whose numbers have the same quotient.
  void find_runs(std::span<const Unit> units, uint32_t run) {
    for (uint32_t k = 0; k < units.size(); ++k) {
      if (k == 0 || units[k].unit / run != units[k - 1].unit / run) begins_.push_back(k);
    }
    begins_.push_back(static_cast<uint32_t>(units.size()));
  }
  void begin(uint64_t at, Kept& kept) {
    begin_ = at_ = at;
    kept_ = &kept;
  }
  std::byte* there() const { return kept_->there.data() + (at_ - begin_); }
  template <class T>
  const T* add(std::span<const T> list) {
    if (list.empty()) return nullptr;
    std::memcpy(here_.data() + at_, list.data(), list.size_bytes());
    const auto* const at = reinterpret_cast<const T*>(there());
    const uint64_t end = align_up(at_ + list.size_bytes(), kPlaceUnit);
    std::memset(here_.data() + at_ + list.size_bytes(), 0, end - at_ - list.size_bytes());
    at_ = end;
    return at;
  }
  cudaError_t copy(cudaStream_t stream) {
    const std::span<const std::byte> list(here_.data() + begin_, at_ - begin_);
    if (list.empty()) return cudaSuccess;
    const bool there_already =
        list.size() == kept_->sent.size() && std::memcmp(list.data(), kept_->sent.data(), list.size()) == 0;
    if (there_already) return cudaSuccess;
    same_site_ = false;
    kept_->sent.assign(list.begin(), list.end());
    const cudaError_t error =
        cudaMemcpyAsync(kept_->there.data(), list.data(), list.size(), cudaMemcpyHostToDevice, stream);
    if (error != cudaSuccess) kept_->sent.clear();
    return error;
  }

  Growing<PinnedBytes> here_;
  Kept of_rows_;
  std::vector<Kept> of_sites_;
  uint64_t begin_ = 0;  // in `here_`: of what is put together
  uint64_t at_ = 0;
  Kept* kept_ = nullptr;
  std::vector<uint32_t> begins_;
  RunLists lists_;
  bool same_site_ = false;
};

}  // namespace tierd::cuda
