#include "core/kernel/plugin_deadline.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace tierd {
namespace {

uint64_t thread_cpu_ns() {
  timespec time{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

void PluginDeadline::sample() const {
  sample_ = {begin_ns_, thread_cpu_ns()};
}

std::optional<std::string> PluginDeadline::overrun(uint64_t took_ns, uint64_t deadline_ns,
                                                   const PluginCalls::Scope& scope) const {
  if (took_ns <= deadline_ns) return std::nullopt;
  const auto too_long = [](uint64_t ns, const char* what, uint64_t most_ns) {
    return fmt::format("took {} ms{}, at most {} ms were allowed (plugins.deadline_ms)", ns / 1'000'000, what,
                       most_ns / 1'000'000);
  };
  const uint64_t now = thread_cpu_ns();
  const uint64_t cpu = now - std::min(now, most_cpu_ns_);
  if (cpu > deadline_ns) return too_long(cpu, " of the processor", deadline_ns);
  const uint64_t awake = took_ns - std::min(took_ns, scope.paused_ns());
  if (awake > kWallDeadlines * deadline_ns) return too_long(awake, "", kWallDeadlines * deadline_ns);
  return std::nullopt;
}

}  // namespace tierd
