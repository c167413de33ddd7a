// A GPU above DRAM for which this machine stands.
#pragma once

#include <string>

#include "core/config/config.h"

namespace tierd {

// It computes everything, from so much memory.
inline void use_gpu(Config& config, const char* capacity) {
  TierConfig& gpu = config.tier("gpu");
  gpu.kind = "gpu";
  gpu.over = "dram";
  gpu.capacity = capacity;
  gpu.settings = {{"backend", std::string("host"), "test"}};
  config.dense = "gpu";
}

}  // namespace tierd
