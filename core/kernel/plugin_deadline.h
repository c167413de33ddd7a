// How long a call of a plugin took, and whether that was too long: by the processor's time of its thread,
// since a process may stand still in the middle of a call (a virtual machine that is paused, SIGSTOP), and by
// ten times as much of the wall's, for a plugin that sleeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/time.h"
#include "core/kernel/plugin_calls.h"

namespace tierd {

// Deadlines of wall time that a call may take, pauses of the process apart.
constexpr uint64_t kWallDeadlines = 10;

class PluginDeadline {
 public:
  // The call begins. `timed` false: nothing is measured.
  explicit PluginDeadline(bool timed) : begin_ns_(timed ? now_ns() : 0) {
    if (timed && begin_ns_ - sample_.wall_ns > kSampleEveryNs) sample();
    if (timed) most_cpu_ns_ = sample_.cpu_ns + (begin_ns_ - sample_.wall_ns);
  }

  // Returns the wall time of the call, which is over.
  uint64_t took_ns() const { return begin_ns_ == 0 ? 0 : now_ns() - begin_ns_; }
  // Returns what was too long of a call of so much wall time. Nothing: it was within the deadline.
  std::optional<std::string> overrun(uint64_t took_ns, uint64_t deadline_ns,
                                     const PluginCalls::Scope& scope) const;

 private:
  // The thread's processor time costs a system call to read, and calls are many: it is read now and then, and
  // at most all of the wall time since then was the processor's.
  static constexpr uint64_t kSampleEveryNs = 10'000'000;
  struct Sample {
    uint64_t wall_ns;
    uint64_t cpu_ns;
  };
  void sample() const;

  static inline thread_local Sample sample_{};
  uint64_t begin_ns_;
  uint64_t most_cpu_ns_ = 0;  // that the thread had taken when the call began
};

}  // namespace tierd
