// The time in which the processor on a DIMM reads its own DRAM: activations, bursts and bank groups, in
// cycles of the memory's clock.
//
// Bytes are striped by bursts: burst n of the DIMM is in rank n mod ranks; the bursts of a rank alternate
// among its bank groups; those of a bank group fill a row of one bank, then the row of the same number of the
// next bank, and only then the next row. Contiguous bytes are thus read from all ranks and bank groups at
// once, and open one row in each of them for every ranks x bank_groups x row_bytes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace tierd {

inline constexpr uint32_t kDdr4BurstBytes = 64;  // eight transfers of 64 bits

// Times are in cycles and named as in JEDEC's standard (JESD79-4).
struct Ddr4Description {
  uint32_t ranks = 1;  // each has a bus of its own to the DIMM's processor
  uint32_t bank_groups = 1;
  uint32_t banks_per_group = 1;
  uint32_t row_bytes = kDdr4BurstBytes;  // that one activation opens, over all chips of a rank
  double clock_hz = 1;                   // of commands
  uint32_t rc = 0;                       // from one activation of a bank to its next
  uint32_t rcd = 0;                      // from an activation to a read
  uint32_t cl = 0;                       // from a read to its first data
  uint32_t rp = 0;                       // from closing a row to the next activation of its bank
  uint32_t bl = 1;                       // of a burst's data
  uint32_t ccd_s = 1;                    // from a read to one in another bank group
  uint32_t ccd_l = 1;                    // and in the same one
  uint32_t rrd_s = 1;                    // from an activation to one in another bank group
  uint32_t rrd_l = 1;                    // and in the same one
  uint32_t faw = 0;                      // window in which a rank activates at most four rows

  double seconds(uint64_t cycles) const { return static_cast<double>(cycles) / clock_hz; }
  // Cycles from a read to the next one in any bank group: the bus carries one burst at a time.
  uint32_t read_gap() const { return ccd_s > bl ? ccd_s : bl; }
  // Bytes a second of all ranks with open rows.
  double streaming_rate() const;
};

// A list of reads that is known before the first of them. Each rank reads in the list's order; it opens rows
// in the same order, each as soon as its bank and the other activations allow, so that a bank opens its row
// while others are read. All rows are closed at the beginning.
//
// The time is computed row by row: within a row, the reads after the first two of each bank group have a
// constant period. The command bus is ignored, because it is used for at most three of the cycles of a
// burst's data, and so are refreshes and bus turnarounds, because nothing is written.
class Ddr4Reads {
 public:
  // `dimm` must outlive this.
  explicit Ddr4Reads(const Ddr4Description& dimm);

  // Adds bytes of the DIMM to the list, in whole bursts.
  void read(uint64_t begin, uint64_t bytes);
  // Returns the cycles until all reads are complete; 0 without reads.
  uint64_t cycles() const;
  double seconds() const { return dimm_.seconds(cycles()); }

 private:
  static constexpr int64_t kNever = -(int64_t{1} << 32);  // before any cycle that still matters
  struct Bank {
    int64_t row = -1;
    int64_t activated = kNever;
    int64_t read = kNever;  // of the last read
  };
  struct Group {
    int64_t activated = kNever;
    int64_t read = kNever;
  };
  struct Rank {
    std::vector<Bank> banks;  // [groups x banks]
    std::vector<Group> groups;
    std::array<int64_t, 4> activated = {kNever, kNever, kNever, kNever};  // the last four, cyclic
    uint32_t oldest = 0;                                                  // index of the oldest of them
    int64_t read = kNever;
  };
  void read(Rank& rank, uint64_t begin, uint64_t end) const;
  void read_row(Rank& rank, uint64_t begin, uint64_t end) const;
  void activate(Rank& rank, uint32_t group, Bank& bank, int64_t row) const;
  void read_burst(Rank& rank, uint32_t group, const Bank& bank) const;

  const Ddr4Description& dimm_;
  std::vector<Rank> ranks_;  // only one while all ranks have the same reads
};

}  // namespace tierd
