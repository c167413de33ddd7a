// The settings from which a device is made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/agent/agent_entry.h"
#include "core/agent/message.h"
#include "tiers/gpu/cuda/cufile.h"

namespace tierd::cuda {

struct DeviceOptions {
  uint16_t number = 0;  // the agent's
  std::string table;    // of the configuration: errors name its keys
  int ordinal = 0;      // the driver's number of the device
  MemoryId memory = 1;
  uint64_t arena_bytes = 0;
  uint64_t staging_bytes = 0;          // behind the arena
  uint64_t tensor_bytes = 0;           // behind the staging
  std::vector<uint64_t> tensors = {};  // [TensorId] bytes from the beginning of the memory
  std::string cufile = kCuFileLibrary;
  uint32_t blas_rows = 64;  // cuBLASLt, if present, multiplies batches of so many rows and more; 0: none

  // Returns the options for the context's task, on the first device.
  static DeviceOptions of(const AgentContext& context) {
    const ComputeTask& task = *context.compute;
    return {.number = context.number,
            .table = context.table,
            .memory = task.memory,
            .arena_bytes = task.arena_bytes,
            .staging_bytes = task.staging_bytes,
            .tensor_bytes = task.tensor_bytes,
            .tensors = task.tensors};
  }
};

}  // namespace tierd::cuda
