// Who tells that memory is getting short around this process. [one thread]
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
  // Whether memory is short, or was at some time since the last call. Does not block.
  virtual bool pressed() = 0;
};

// The kernel's own word (PSI): within some window of `window_us`, tasks waited for memory `stall_us` in all.
// `files`: the first that takes the trigger is asked. Error: unsupported, naming the last of them.
struct StallTrigger {
  uint64_t stall_us = 0;
  uint64_t window_us = 0;
};
Result<std::unique_ptr<PressureSource>> watch_stalls(const std::vector<std::string>& files,
                                                     const StallTrigger& trigger);
// Those of this process, its group's before the machine's.
std::vector<std::string> stall_files();

// More than `share` of the group's limit is in use. Error: unsupported, where there is no limit.
Result<std::unique_ptr<PressureSource>> watch_limit(const ControlGroup& group, double share);

}  // namespace tierd
