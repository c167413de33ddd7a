// How fast a disk reads, by the size of a read.
#pragma once

#include <cstdint>
#include <vector>

namespace tierd {

// Between two measured sizes a read takes a time that grows with its bytes in a straight line; a smaller one
// takes as long as the smallest; beyond the largest, that one's rate.
class ReadCurve {
 public:
  struct Point {
    uint64_t bytes = 0;
    double bytes_per_second = 0;
  };
  // At least one point, in growing sizes.
  explicit ReadCurve(std::vector<Point> points);
  // In closed form: n bytes take `seconds` + n / `rate` of the disk's time, but no less than n / `cap`, which
  // is at most `rate`.
  static ReadCurve of_requests(double seconds, double rate, double cap);

  const std::vector<Point>& points() const { return points_; }
  // A line through reads of 4 and 128 KiB: n bytes take seconds + n / bytes_per_second of the disk's time.
  // Both are 0 where the larger read takes no longer, or nothing remains for the request.
  struct Request {
    double seconds = 0;
    double bytes_per_second = 0;
    // What a request costs, in bytes: so much may lie between two runs of bytes for one read of both to be
    // faster than two (LLM in a flash, 4: "the break-even").
    uint64_t bytes() const { return static_cast<uint64_t>(seconds * bytes_per_second); }
    // The gap that is read through: half of that. Around the break-even the time is flat, and what is thrown
    // away takes memory's time as well.
    uint64_t gap_bytes() const { return bytes() / 2; }
  };
  Request request() const;
  // The disk's time for one read of so many bytes, which are whole blocks.
  double seconds_each(double bytes) const;
  // For `total` bytes in reads of `bytes`, of which the disk reads whole blocks of 4096: of `aligned` ones
  // the blocks, else those that a run of bytes anywhere touches on average.
  double seconds(double total, uint64_t bytes, bool aligned) const;
  // The same for pieces of `bytes` of which every one is asked for with probability `density`: adjacent ones
  // are one read, and gaps up to the best length are read through, as the flash agent does.
  double scattered_seconds(double total, uint64_t bytes, bool aligned, double density) const;
  // Bytes that are asked for, a second.
  double rate(uint64_t bytes, bool aligned) const { return 1 / seconds(1, bytes, aligned); }

 private:
  std::vector<Point> points_;
};

}  // namespace tierd
