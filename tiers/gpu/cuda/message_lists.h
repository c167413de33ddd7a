// The lists of a message on the device: put together in pinned memory and sent by one copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/agent/joint_run.h"
#include "core/agent/message.h"
#include "core/base/align.h"
#include "core/base/check.h"
#include "tiers/gpu/cuda/buffers.h"
#include "tiers/gpu/cuda/outcome.h"

namespace tierd::cuda {

// The lists of a site's run on the device. Valid until the next message is begun.
struct RunLists {
  struct Taken {
    const float* values = nullptr;      // [rows x columns of the take]
    const uint32_t* neurons = nullptr;  // of the take; NULL if it has none
  };
  const RowInfo* rows = nullptr;
  const Unit* units = nullptr;
  const uint64_t* masks = nullptr;   // NULL if there are none
  const uint32_t* begins = nullptr;  // where runs of neurons begin, and the end of the last run
  uint32_t n_runs = 0;
  std::vector<Taken> takes = {};
  // All lists except the rows are, byte for byte and at the same address, those of the site's previous run.
  bool as_before = false;
};

class MessageLists {
 public:
  // Queues the copy of a message's lists; each site occurs once in a message. `run_of(site)` returns how many
  // of its neurons are summed together, 1 if none are. Copies of an earlier call must have ended.
  template <class RunOf>
  cudaError_t send(const Message& message, const Payload& payload, RunOf run_of, cudaStream_t stream) {
    const uint64_t of_rows = align_up(payload.rows.size_bytes(), kPlaceUnit);
    uint64_t all = of_rows;
    sizes_.clear();
    each_site(message, payload, [&](const Message& one, const Payload& its, size_t) {
      find_runs(its.units, run_of(one.site));
      sizes_.push_back(bytes_of(one, its));
      all += sizes_.back();
    });
    lists_.resize(sizes_.size());
    Outcome outcome;
    outcome.then([&] { return here_.hold(all); });
    outcome.then([&] { return of_rows_.hold(of_rows); });
    if (!outcome.ok()) return outcome.error();

    begin(0, of_rows_);
    const RowInfo* const rows = add(payload.rows);
    outcome.then([&] { return copy(stream).error; });
    uint64_t from = of_rows;
    each_site(message, payload, [&](const Message& one, const Payload& its, size_t i) {
      find_runs(its.units, run_of(one.site));
      lists_[i] = {.rows = rows};
      outcome.then([&] { return send_site(one, its, from, sizes_[i], lists_[i], stream); });
      from += sizes_[i];
    });
    return outcome.error();
  }
  // Returns the lists of the last message; for a joint run, those of its site number `index`.
  const RunLists& lists(size_t index = 0) const { return lists_[index]; }

 private:
  // Lists that the device has already are not copied again: the neurons of a resident site are the same in
  // every step, and the rows are the same for all sites of a step.
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

  struct Copied {
    cudaError_t error = cudaSuccess;
    bool was_there = false;
  };

  uint64_t bytes_of(const Message& message, const Payload& payload) const {
    uint64_t bytes = align_up(payload.units.size_bytes(), kPlaceUnit) +
                     align_up(payload.masks.size_bytes(), kPlaceUnit) +
                     align_up(begins_.size() * sizeof(uint32_t), kPlaceUnit);
    for (const Take& take : payload.takes) {
      bytes += align_up(uint64_t{message.rows} * take.columns * sizeof(float), kPlaceUnit);
      bytes += align_up(take.neurons.size_bytes(), kPlaceUnit);
    }
    return bytes;
  }

  cudaError_t send_site(const Message& message, const Payload& payload, uint64_t from, uint64_t bytes,
                        RunLists& lists, cudaStream_t stream) {
    if (message.site >= of_sites_.size()) of_sites_.resize(message.site + 1u);
    Kept& of_this = of_sites_[message.site];
    if (const cudaError_t error = of_this.hold(bytes); error != cudaSuccess) return error;
    begin(from, of_this);
    lists.units = add(payload.units);
    lists.masks = add(payload.masks);
    lists.begins = add(std::span<const uint32_t>(begins_));
    lists.n_runs = begins_.empty() ? 0 : static_cast<uint32_t>(begins_.size() - 1);
    for (const Take& take : payload.takes) {
      RunLists::Taken& of_take = lists.takes.emplace_back();
      auto* const values = reinterpret_cast<float*>(here_.data() + at_);
      for (uint64_t i = 0; i < message.rows; ++i)
        std::memcpy(values + i * take.columns, take.values + i * take.stride + take.first,
                    take.columns * sizeof(float));
      of_take.values = reinterpret_cast<const float*>(there());
      at_ = align_up(at_ + uint64_t{message.rows} * take.columns * sizeof(float), kPlaceUnit);
      of_take.neurons = add(take.neurons);
    }
    TIERD_CHECK(at_ <= from + bytes);
    const Copied copied = copy(stream);
    lists.as_before = copied.was_there;
    return copied.error;
  }

  // Finds the runs: neurons whose numbers have the same quotient; none if no neurons are summed together.
  void find_runs(std::span<const Unit> units, uint32_t run) {
    begins_.clear();
    if (run <= 1) return;
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
  Copied copy(cudaStream_t stream) {
    const std::span<const std::byte> list(here_.data() + begin_, at_ - begin_);
    if (list.empty()) return {.was_there = true};
    const bool there_already =
        list.size() == kept_->sent.size() && std::memcmp(list.data(), kept_->sent.data(), list.size()) == 0;
    if (there_already) return {.was_there = true};
    kept_->sent.assign(list.begin(), list.end());
    const cudaError_t error =
        cudaMemcpyAsync(kept_->there.data(), list.data(), list.size(), cudaMemcpyHostToDevice, stream);
    if (error != cudaSuccess) kept_->sent.clear();
    return {.error = error};
  }

  Growing<PinnedBytes> here_;
  Kept of_rows_;
  std::vector<Kept> of_sites_;
  uint64_t begin_ = 0;  // in `here_`: first byte of the list that is put together
  uint64_t at_ = 0;
  Kept* kept_ = nullptr;
  std::vector<uint32_t> begins_;  // of the runs of the current site
  std::vector<uint64_t> sizes_;   // [sites of the message]
  std::vector<RunLists> lists_;   // [sites of the message]
};

}  // namespace tierd::cuda
