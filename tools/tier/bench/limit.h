// The speed that the machine's bandwidths allow a step, whatever the program does.
#pragma once

namespace tierd {

struct Bandwidths {
  double flash = 0;   // bytes per second, sequential; 0: not measured
  double memory = 0;  // bytes per second that the compute threads read
};

// The bytes of one token.
struct Traffic {
  double must_read = 0;  // from flash, because nobody keeps them
  double weights = 0;    // that compute touches, wherever they come from
};

struct Limit {
  double flash_seconds = 0;   // a token's reads
  double memory_seconds = 0;  // a token's weights through the cores
  double seconds() const { return flash_seconds > memory_seconds ? flash_seconds : memory_seconds; }
  // Tokens per second; 0 when nothing bounds them.
  double rate() const { return seconds() > 0 ? 1 / seconds() : 0; }
  // Whether the smaller term comes within 20 % of the larger: then the two must overlap perfectly to reach
  // it.
  bool close() const;
};
Limit limit_of(const Traffic& traffic, const Bandwidths& bandwidths);

}  // namespace tierd
