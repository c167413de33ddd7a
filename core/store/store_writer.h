// write_store with its surroundings exchangeable, for tests.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/disk.h"
#include "core/store/writer.h"

namespace tierd {

struct WriterLimits {
  uint64_t batch_bytes = 16 << 20;        // packed at once; two batches are in memory
  uint64_t checkpoint_bytes = 256 << 20;  // the most work that an interruption loses
};

Status write_store_on(Disk& disk, const TensorSource& source, const std::string& directory,
                      const WriteOptions& options, const WriterLimits& limits);

}  // namespace tierd
