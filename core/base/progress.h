// Progress of a long job, on stderr: a bar that redraws itself on a terminal, a plain line every few seconds
// elsewhere. Shows the rate, bytes done and the time left.
#pragma once

#include <cstdint>
#include <string>

namespace tierd {

class Progress {
 public:
  // `total_bytes` 0: unknown, no bar and no time left. Not thread-safe.
  Progress(std::string title, uint64_t total_bytes, bool quiet = false);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(uint64_t bytes);
  void finish();

 private:
  void draw(bool last);

  std::string title_;
  uint64_t total_;
  uint64_t done_ = 0;
  uint64_t start_ns_;
  uint64_t drawn_ns_ = 0;
  bool terminal_;
  bool quiet_;
  bool finished_ = false;
};

}  // namespace tierd
