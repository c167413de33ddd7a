// A disk's read rate by the size of a read.
#pragma once

#include <cstdint>
#include <vector>

namespace tierd {

// Between two measured sizes the time of a read is linear in its bytes; a smaller read takes as long as the
// smallest; a larger one has the rate of the largest.
class ReadCurve {
 public:
  struct Point {
    uint64_t bytes = 0;
    double bytes_per_second = 0;
  };
  // At least one point, by growing size.
  explicit ReadCurve(std::vector<Point> points);
  // The closed form: n bytes take `seconds` + n / `rate` of the disk's time, but at least n / `cap`, which is
  // at most `rate`.
  static ReadCurve of_requests(double seconds, double rate, double cap);

  const std::vector<Point>& points() const { return points_; }
  // A line through reads of 4 and 128 KiB: n bytes take seconds + n / bytes_per_second of the disk's time.
  // Both are 0 if the larger read takes no longer, or if no time remains for the request.
  struct Request {
    double seconds = 0;
    double bytes_per_second = 0;
    // The cost of a request in bytes: two runs of bytes with a smaller gap are faster read in one request
    // (LLM in a flash, 4: "the break-even").
    uint64_t bytes() const { return static_cast<uint64_t>(seconds * bytes_per_second); }
    // The largest gap that is read through: half of the break-even. Around the break-even the time is flat,
    // and discarded bytes cost memory bandwidth as well.
    uint64_t gap_bytes() const { return bytes() / 2; }
  };
  Request request() const;
  // The disk's time for one read of `bytes`, which are whole blocks.
  double seconds_each(double bytes) const;
  // The time of `total` bytes in reads of `bytes`. The disk reads whole blocks of 4096: exactly these for
  // `aligned` reads, else those that a run of bytes at any offset touches on average.
  double seconds(double total, uint64_t bytes, bool aligned) const;
  // Wanted bytes a second.
  double rate(uint64_t bytes, bool aligned) const { return 1 / seconds(1, bytes, aligned); }

 private:
  std::vector<Point> points_;
};

}  // namespace tierd
