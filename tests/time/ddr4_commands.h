// The twin of Ddr4Reads: a controller for each rank that decides in every cycle which command it may give. It
// shares only the description and the places of bursts with Ddr4Reads, and is slow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/time/ddr4_timing.h"

namespace tierd {

struct ByteRange {
  uint64_t begin = 0;
  uint64_t bytes = 0;
};

// Gives at most one command a cycle: the next read of the list if it is allowed, else the first allowed
// activation or closing, in the order in which rows are needed.
class Ddr4Commands {
 public:
  explicit Ddr4Commands(const Ddr4Description& dimm) : dimm_(dimm) {}

  uint64_t cycles(std::span<const ByteRange> ranges) const {
    uint64_t last = 0;
    for (uint32_t rank = 0; rank < dimm_.ranks; ++rank) last = std::max(last, cycles_of(rank, ranges));
    return last;
  }

 private:
  struct Burst {
    uint32_t bank = 0;  // of all banks of the rank
    uint32_t group = 0;
    int64_t row = 0;
  };
  struct Bank {
    int64_t row = -1;  // the open row
    int64_t may_activate = 0;
    int64_t may_close = 0;
    int64_t may_read = 0;
    size_t next = 0;             // of `bursts`
    std::vector<size_t> bursts;  // in this bank, by their places in the list
  };
  // Returns the bursts of a rank in the order in which they are read.
  std::vector<Burst> bursts_of(uint32_t rank, std::span<const ByteRange> ranges) const {
    std::vector<Burst> all;
    for (const ByteRange& range : ranges) {
      const uint64_t end = (range.begin + range.bytes + kDdr4BurstBytes - 1) / kDdr4BurstBytes;
      for (uint64_t n = range.begin / kDdr4BurstBytes; n < end; ++n) {
        if (n % dimm_.ranks != rank) continue;
        const uint64_t in_rank = n / dimm_.ranks;
        const uint64_t in_group = in_rank / dimm_.bank_groups;
        const uint64_t row = in_group / (dimm_.row_bytes / kDdr4BurstBytes);
        const auto group = static_cast<uint32_t>(in_rank % dimm_.bank_groups);
        all.push_back(
            {.bank = group * dimm_.banks_per_group + static_cast<uint32_t>(row % dimm_.banks_per_group),
             .group = group,
             .row = static_cast<int64_t>(row / dimm_.banks_per_group)});
      }
    }
    return all;
  }
  uint64_t cycles_of(uint32_t rank, std::span<const ByteRange> ranges) const {
    const std::vector<Burst> bursts = bursts_of(rank, ranges);
    if (bursts.empty()) return 0;
    std::vector<Bank> banks(size_t{dimm_.bank_groups} * dimm_.banks_per_group);
    for (size_t i = 0; i < bursts.size(); ++i) banks[bursts[i].bank].bursts.push_back(i);
    std::vector<int64_t> activations;
    std::vector<int64_t> group_activated(dimm_.bank_groups, -1'000'000);
    std::vector<int64_t> group_read(dimm_.bank_groups, -1'000'000);
    int64_t read = -1'000'000;
    size_t head = 0;
    for (int64_t now = 0;; ++now) {
      const Burst& first = bursts[head];
      Bank& holds = banks[first.bank];
      if (holds.row == first.row && now >= holds.may_read && now >= read + dimm_.read_gap() &&
          now >= group_read[first.group] + dimm_.ccd_l) {
        read = group_read[first.group] = now;
        holds.may_close = std::max(holds.may_close, now + dimm_.bl);
        ++holds.next;
        if (++head == bursts.size()) return static_cast<uint64_t>(now) + dimm_.cl + dimm_.bl;
        continue;
      }
      const auto activation_allowed = [&](uint32_t group) {
        return (activations.empty() || now >= activations.back() + dimm_.rrd_s) &&
               now >= group_activated[group] + dimm_.rrd_l &&
               (activations.size() < 4 || now >= activations[activations.size() - 4] + dimm_.faw);
      };
      Bank* chosen = nullptr;
      for (Bank& bank : banks) {
        if (bank.next == bank.bursts.size()) continue;
        const Burst& wanted = bursts[bank.bursts[bank.next]];
        if (bank.row == wanted.row) continue;
        const bool allowed = bank.row >= 0 ? now >= bank.may_close
                                           : now >= bank.may_activate && activation_allowed(wanted.group);
        if (!allowed) continue;
        if (chosen == nullptr || bank.bursts[bank.next] < chosen->bursts[chosen->next]) chosen = &bank;
      }
      if (chosen == nullptr) continue;
      const Burst& wanted = bursts[chosen->bursts[chosen->next]];
      if (chosen->row >= 0) {
        chosen->row = -1;
        chosen->may_activate = std::max(chosen->may_activate, now + dimm_.rp);
        continue;
      }
      chosen->row = wanted.row;
      chosen->may_read = now + dimm_.rcd;
      chosen->may_close = now + dimm_.rc - dimm_.rp;
      chosen->may_activate = now + dimm_.rc;
      group_activated[wanted.group] = now;
      activations.push_back(now);
    }
  }

  const Ddr4Description dimm_;
};

}  // namespace tierd
