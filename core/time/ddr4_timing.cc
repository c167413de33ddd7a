#include "core/time/ddr4_timing.h"

#include <algorithm>

namespace tierd {

double Ddr4Description::streaming_rate() const {
  const uint32_t round = std::max(bank_groups * read_gap(), ccd_l);  // one burst of every bank group
  return double{kDdr4BurstBytes} * ranks * bank_groups / round * clock_hz;
}

Ddr4Reads::Ddr4Reads(const Ddr4Description& dimm) : dimm_(dimm), ranks_(1) {
  ranks_.front().groups.resize(dimm.bank_groups);
  ranks_.front().banks.resize(size_t{dimm.bank_groups} * dimm.banks_per_group);
}

void Ddr4Reads::read(uint64_t begin, uint64_t bytes) {
  const uint64_t ranks = dimm_.ranks;
  const uint64_t first = begin / kDdr4BurstBytes;
  const uint64_t last = (begin + bytes + kDdr4BurstBytes - 1) / kDdr4BurstBytes;
  if (bytes == 0) return;
  const bool same = first % ranks == 0 && last % ranks == 0;
  if (!same && ranks_.size() < ranks) ranks_.resize(ranks, Rank(ranks_.front()));
  for (uint64_t r = 0; r < ranks_.size(); ++r) {
    const uint64_t round_up = ranks - 1 - r;
    read(ranks_[r], (first + round_up) / ranks, (last + round_up) / ranks);
  }
}

uint64_t Ddr4Reads::cycles() const {
  int64_t last = kNever;
  for (const Rank& rank : ranks_) last = std::max(last, rank.read);
  return last == kNever ? 0 : static_cast<uint64_t>(last) + dimm_.cl + dimm_.bl;
}

// `begin` to `end` are bursts of the rank.
void Ddr4Reads::read(Rank& rank, uint64_t begin, uint64_t end) const {
  const uint64_t bursts = uint64_t{dimm_.bank_groups} * (dimm_.row_bytes / kDdr4BurstBytes);
  while (begin < end) {
    const uint64_t next = std::min(end, (begin / bursts + 1) * bursts);
    read_row(rank, begin, next);
    begin = next;
  }
}

// Reads bursts that are in one row of one bank in each bank group.
void Ddr4Reads::read_row(Rank& rank, uint64_t begin, uint64_t end) const {
  const uint64_t groups = dimm_.bank_groups;
  const uint64_t number = begin / (groups * (dimm_.row_bytes / kDdr4BurstBytes));
  const auto row = static_cast<int64_t>(number / dimm_.banks_per_group);
  const auto group_of = [&](uint64_t burst) { return static_cast<uint32_t>(burst % groups); };
  const auto bank_of = [&](uint32_t group) -> Bank& {
    return rank.banks[size_t{group} * dimm_.banks_per_group + number % dimm_.banks_per_group];
  };
  const auto read_each = [&](uint64_t from, uint64_t to) {
    for (uint64_t burst = from; burst < to; ++burst) {
      const uint32_t group = group_of(burst);
      read_burst(rank, group, bank_of(group));
    }
  };
  const uint64_t touched = std::min(end, begin + groups);
  for (uint64_t burst = begin; burst < touched; ++burst) {
    const uint32_t group = group_of(burst);
    Bank& bank = bank_of(group);
    if (bank.row != row) activate(rank, group, bank, row);
  }
  const uint64_t steady = std::min(end, begin + 2 * groups);
  read_each(begin, steady);
  const uint64_t rounds = (end - steady) / groups;
  const auto skipped =
      static_cast<int64_t>(rounds * std::max<uint64_t>(groups * dimm_.read_gap(), dimm_.ccd_l));
  if (rounds > 0) {
    for (Group& group : rank.groups) group.read += skipped;
    rank.read += skipped;
  }
  read_each(steady + rounds * groups, end);
  for (uint64_t burst = begin; burst < touched; ++burst) {
    const uint32_t group = group_of(burst);
    bank_of(group).read = rank.groups[group].read;
  }
}

void Ddr4Reads::activate(Rank& rank, uint32_t group, Bank& bank, int64_t row) const {
  const int64_t last = rank.activated[(rank.oldest + 3) % rank.activated.size()];
  int64_t at =
      std::max({int64_t{0}, bank.activated + dimm_.rc, last + dimm_.rrd_s,
                rank.groups[group].activated + dimm_.rrd_l, rank.activated[rank.oldest] + dimm_.faw});
  // A row is closed after its last burst.
  if (bank.row >= 0) at = std::max(at, bank.read + dimm_.bl + dimm_.rp);
  bank.row = row;
  bank.activated = rank.groups[group].activated = at;
  rank.activated[rank.oldest] = at;
  rank.oldest = (rank.oldest + 1) % static_cast<uint32_t>(rank.activated.size());
}

void Ddr4Reads::read_burst(Rank& rank, uint32_t group, const Bank& bank) const {
  int64_t& last = rank.groups[group].read;
  last = std::max({bank.activated + dimm_.rcd, rank.read + dimm_.read_gap(), last + dimm_.ccd_l});
  rank.read = last;
}

}  // namespace tierd
