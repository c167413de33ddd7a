// Sources of memory pressure around this process. [one thread]
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/system/memory_group.h"

namespace tierd {

class PressureSource {
 public:
  virtual ~PressureSource() = default;
  // Returns whether memory is short, or was at some time since the last call. Does not block.
  virtual bool pressed() = 0;
};

// Watches the kernel's pressure stall information (PSI): pressed if, within some window of `window_us`, tasks
// waited for memory for `stall_us` in all. Uses the first of `files` that accepts the trigger. Error:
// unsupported, naming the last of them.
struct StallTrigger {
  uint64_t stall_us = 0;
  uint64_t window_us = 0;
};
Result<std::unique_ptr<PressureSource>> watch_stalls(const std::vector<std::string>& files,
                                                     const StallTrigger& trigger);
// Returns the PSI files of this process, its cgroup's before the machine's.
std::vector<std::string> stall_files();

// Pressed while more than `share` of the group's limit is in use. Error: unsupported if there is no limit.
Result<std::unique_ptr<PressureSource>> watch_limit(const ControlGroup& group, double share);

}  // namespace tierd
