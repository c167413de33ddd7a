// A link of a given rate into the memory of a device for which this machine stands.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tierd {

class EmulatedLink {
 public:
  struct Rate {
    uint64_t bytes_per_second = 0;  // 0: as fast as the processor copies
    uint64_t latency_ns = 0;        // of each copy
  };
  struct Crossing {
    uint64_t start_ns = 0;
    uint64_t over_ns = 0;
  };

  explicit EmulatedLink(const Rate& rate) : rate_(rate) {}

  bool takes_time() const { return rate_.bytes_per_second != 0; }
  // Puts bytes on the link behind those on it already; `since_ns` is when they became ready. The crossing
  // begins then, or when the link becomes free.
  Crossing carry(uint64_t bytes, uint64_t since_ns) {
    Crossing crossing{.start_ns = std::max(since_ns, free_ns_)};
    crossing.over_ns =
        crossing.start_ns + rate_.latency_ns +
        static_cast<uint64_t>(static_cast<double>(bytes) / static_cast<double>(rate_.bytes_per_second) * 1e9);
    free_ns_ = crossing.over_ns;
    return crossing;
  }

 private:
  const Rate rate_;
  uint64_t free_ns_ = 0;
};

}  // namespace tierd
