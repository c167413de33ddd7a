// A sweep as a picture of two panels: above, the parts of a token's time; below, the bytes read from flash
// and held in memory. The x axis is the first key; for a budget, the memory actually used, which gives the
// memory-latency curve ("LLM in a flash", 3.1.2 and 4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/lab/sweep/sweep_figures.h"

namespace tierd {

struct Picture {
  enum class XAxis { numbers, names, memory };
  struct Mark {
    std::string value;  // of the first key, as in the command line
    double x = 0;       // a number, GB or percent; for a name its position; bytes of memory
    double ms = 0;      // mean time of a token; its parts follow
    uint64_t blocks = 0;
    double least_ms = 0, most_ms = 0;  // of the blocks
    double compute_ms = 0;             // includes the predictor's
    double flash_ms = 0;               // waiting for reads, submitting and verifying them
    double management_ms = 0;
    double memory_bytes = 0;  // in use
    double flash_bytes = 0;   // read for a token
  };
  struct Line {
    std::string name;  // the second key's value; empty if there is one key
    std::vector<Mark> marks;
  };

  std::string title;
  std::string x_title;
  XAxis axis = XAxis::numbers;
  std::vector<Line> lines;
};

// Returns a picture of the last test of every point that has not failed. Error: not_found if all have failed.
Result<Picture> picture_of(const SweepFigures& report);

}  // namespace tierd
