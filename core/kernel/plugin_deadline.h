// Measures a call of a plugin and decides whether it took too long: by the processor time of its thread,
// since a process may be paused in the middle of a call (a suspended virtual machine, SIGSTOP), and by ten
// times as much wall time, for a plugin that sleeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/time.h"
#include "core/kernel/plugin_calls.h"

namespace tierd {

// Deadlines of wall time that a call may take, not counting pauses of the process.
constexpr uint64_t kWallDeadlines = 10;

class PluginDeadline {
 public:
  // Begins a call. `timed` false: nothing is measured.
  explicit PluginDeadline(bool timed) : begin_ns_(timed ? now_ns() : 0) {
    if (timed && begin_ns_ - sample_.wall_ns > kSampleEveryNs) sample();
    if (timed) most_cpu_ns_ = sample_.cpu_ns + (begin_ns_ - sample_.wall_ns);
  }

  // Returns the wall time of the call, which is over.
  uint64_t took_ns() const { return begin_ns_ == 0 ? 0 : now_ns() - begin_ns_; }
  // Returns a text about the exceeded limit, for a call of `took_ns`; nullopt if there was none.
  std::optional<std::string> overrun(uint64_t took_ns, uint64_t deadline_ns,
                                     const PluginCalls::Scope& scope) const;

 private:
  // Reading the thread's processor time costs a system call, and calls are many. So it is sampled now and
  // then; all wall time since the sample counts as processor time of earlier calls.
  static constexpr uint64_t kSampleEveryNs = 10'000'000;
  struct Sample {
    uint64_t wall_ns;
    uint64_t cpu_ns;
  };
  void sample() const;

  static inline thread_local Sample sample_{};
  uint64_t begin_ns_;
  uint64_t most_cpu_ns_ = 0;  // upper bound of the thread's processor time when the call began
};

}  // namespace tierd
