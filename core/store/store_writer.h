// The parts of write_store: the check before the work, and the work with the disk and limits of a test.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/disk.h"
#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/manifest.h"
#include "core/store/writer.h"

namespace tierd {

struct WriterLimits {
  uint64_t batch_bytes = 16 << 20;        // packed at once; two batches are in memory
  uint64_t checkpoint_bytes = 256 << 20;  // the most work that an interruption loses
};

// Returns whether `directory` holds the store of exactly this plan (`plan_text`: its text). Errors:
// invalid_argument if it holds something else, io_error.
Result<bool> holds_store(const std::string& directory, const Manifest& plan, const std::string& plan_text);

Status write_store_on(Disk& disk, const TensorSource& source, const std::string& directory,
                      const WriteOptions& options, const WriterLimits& limits);

}  // namespace tierd
