// A sweep as a picture: where a token's time goes above, what it takes from flash and holds in memory below.
// Over the values of the first key; of a budget over the memory that it came to, which is the memory-latency
// curve ("LLM in a flash", 3.1.2 and 4).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace tierd {

struct Picture {
  enum class XAxis { numbers, names, memory };
  struct Mark {
    std::string value;  // of the first key, as it was written
    double x = 0;       // a number, GB or percent; of a name its place; bytes of memory
    double ms = 0;      // a token's time, the mean, and its parts
    uint64_t blocks = 0;
    double least_ms = 0, most_ms = 0;  // of the blocks
    double compute_ms = 0;             // the predictor's with it
    double flash_ms = 0;               // waiting for reads, submitting and checking them
    double management_ms = 0;
    double memory_bytes = 0;  // in use
    double flash_bytes = 0;   // read, a token
  };
  struct Line {
    std::string name;  // the second key's value; empty without one
    std::vector<Mark> marks;
  };

  std::string title;
  std::string x_title;
  XAxis axis = XAxis::numbers;
  std::vector<Line> lines;
};

// The picture shows the last test of every point that has not failed. Error: not_found where all have failed.
Result<Picture> picture_of(const nlohmann::json& report);

}  // namespace tierd
