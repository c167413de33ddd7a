// A GPU tier over DRAM, emulated by the host.
#pragma once

#include <string>

#include "core/config/config.h"

namespace tierd {

// The GPU computes everything. Its capacity is `capacity`.
inline void use_gpu(Config& config, const char* capacity) {
  TierConfig& gpu = config.tier("gpu");
  gpu.kind = "gpu";
  gpu.over = "dram";
  gpu.capacity = capacity;
  gpu.settings = {{"backend", std::string("host"), "test"}};
  config.dense = "gpu";
}

}  // namespace tierd
