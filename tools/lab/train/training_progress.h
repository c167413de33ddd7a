// What is shown while predictors are trained: the end of each epoch, and what lies between as ProgressLine
// has it.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/lab/train/progress_line.h"

namespace tierd {

class TrainingProgress {
 public:
  // `ranks` [layers], 0 where nothing is trained; `tokens` an epoch. Not thread-safe.
  TrainingProgress(std::vector<uint32_t> ranks, uint32_t epochs, uint32_t tokens, bool quiet);

  // Layers and epochs in order; `tokens` of this epoch are done.
  void show(uint32_t layer, uint32_t epoch, uint32_t tokens, double loss);

 private:
  double share_done(uint32_t layer, uint32_t epoch, uint32_t tokens) const;

  std::vector<uint32_t> ranks_;
  uint32_t epochs_;
  uint32_t tokens_;
  ProgressLine line_;
};

}  // namespace tierd
