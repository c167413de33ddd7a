// What is shown while predictors are trained, on stderr: one line that redraws itself on a terminal, a plain
// line for each epoch and every half minute elsewhere.
#pragma once

#include <cstdint>
#include <vector>

namespace tierd {

class TrainingProgress {
 public:
  // `ranks` [layers], 0 where nothing is trained; `tokens` an epoch. Not thread-safe.
  TrainingProgress(std::vector<uint32_t> ranks, uint32_t epochs, uint32_t tokens, bool quiet);
  ~TrainingProgress();
  TrainingProgress(const TrainingProgress&) = delete;
  TrainingProgress& operator=(const TrainingProgress&) = delete;

  // Layers and epochs in order; `tokens` of this epoch are done.
  void show(uint32_t layer, uint32_t epoch, uint32_t tokens, double loss);

 private:
  double share_done(uint32_t layer, uint32_t epoch, uint32_t tokens) const;

  std::vector<uint32_t> ranks_;
  uint32_t epochs_;
  uint32_t tokens_;
  uint64_t start_ns_;
  uint64_t drawn_ns_;
  bool terminal_;
  bool quiet_;
  bool open_ = false;  // a line on the terminal has no end yet
};

}  // namespace tierd
