// What is shown while something is trained, on stderr: one line that redraws itself on a terminal, a plain
// line every half minute elsewhere.
#pragma once

#include <cstdint>
#include <string>

namespace tierd {

class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether it is time for the next text; `ends`: of something that the last one before a pause belongs to.
  bool due(bool ends) const;
  void show(const std::string& text);
  double seconds() const;  // since the beginning
  // ", 3 min 20 s left", once that can be told: when `share` of the work is done.
  std::string left(double share) const;

 private:
  uint64_t start_ns_;
  uint64_t drawn_ns_;
  bool terminal_;
  bool quiet_;
  bool open_ = false;  // a line on the terminal has no end yet
};

}  // namespace tierd
