// The speed limit of a step that follows from the machine's bandwidths, independent of the program.
#pragma once

namespace tierd {

struct Bandwidths {
  double flash = 0;   // bytes per second, sequential; 0: not measured
  double memory = 0;  // bytes per second that the compute threads read
};

// The bytes of one token.
struct Traffic {
  double must_read = 0;  // from flash, because no memory keeps them
  double weights = 0;    // that computing reads, from any memory
};

struct Limit {
  double flash_seconds = 0;   // a token's reads
  double memory_seconds = 0;  // a token's weights through the cores
  double seconds() const { return flash_seconds > memory_seconds ? flash_seconds : memory_seconds; }
  // Tokens per second; 0 if nothing limits them.
  double rate() const { return seconds() > 0 ? 1 / seconds() : 0; }
  // Returns whether the smaller term is within 20 % of the larger: then the limit can only be reached if the
  // two overlap perfectly.
  bool close() const;
};
Limit limit_of(const Traffic& traffic, const Bandwidths& bandwidths);

}  // namespace tierd
