// Progress of a long job, on stderr: a bar that redraws itself on a terminal, a plain line every few seconds
// elsewhere. Shows the rate, bytes done and the time left.
#pragma once

#include <cstdint>
#include <string>

namespace tierd {

class Progress {
 public:
  // `total` 0: unknown, no bar and no time left. `unit`: what is counted, in the plural; empty: bytes. Not
  // thread-safe.
  Progress(std::string title, uint64_t total, bool quiet = false, std::string unit = "");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(uint64_t done);
  // Whether it has taken so long that something was shown.
  bool shown() const { return drawn_ns_ != start_ns_; }
  void finish();

 private:
  void draw(bool last);

  std::string amount(uint64_t of) const;

  std::string title_;
  std::string unit_;
  uint64_t total_;
  uint64_t done_ = 0;
  uint64_t start_ns_;
  uint64_t drawn_ns_ = 0;
  bool terminal_;
  bool quiet_;
  bool finished_ = false;
};

}  // namespace tierd
