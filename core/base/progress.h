// Progress of a long job, on stderr: a bar that redraws itself on a terminal, a plain line every few seconds
// elsewhere. Shows the rate, bytes done and the time left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tierd {

class Progress {
 public:
  // `total` 0: unknown, so no bar and no time left. `unit`: plural; empty: bytes. Not thread-safe.
  Progress(std::string title, uint64_t total, bool quiet = false, std::string unit = "");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(uint64_t done);
  // Counts work that was done before: it does not enter the rate.
  void skip(uint64_t done);
  // Subtracts work that has to be done again.
  void take_back(uint64_t done);
  // Writes a line above the bar.
  void say_above(std::string_view line);
  // Whether the job has taken so long that progress was shown.
  bool shown() const { return drawn_ns_ != start_ns_; }
  void finish();

 private:
  void draw(bool last);

  std::string amount(uint64_t of) const;

  std::string title_;
  std::string unit_;
  uint64_t total_;
  uint64_t done_ = 0;
  uint64_t skipped_ = 0;  // part of done_
  uint64_t start_ns_;
  uint64_t drawn_ns_ = 0;
  bool terminal_;
  bool quiet_;
  bool finished_ = false;
};

}  // namespace tierd
