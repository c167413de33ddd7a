// A descriptor that turns readable at a given time.
#pragma once

#include <sys/timerfd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/base/check.h"
#include "core/base/descriptor.h"
#include "core/base/result.h"

namespace tierd {

// Error: io_error.
inline Result<Descriptor> make_timer() {
  Descriptor timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.open()) return Error{Code::io_error, "timer", std::strerror(errno)};
  return timer;
}

// Sets the time, in nanoseconds of now_ns(); 0: the descriptor does not turn readable.
inline void ring_at(const Descriptor& timer, uint64_t ns) {
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
  when.it_value.tv_nsec = static_cast<long>(ns % 1'000'000'000);
  TIERD_CHECK(timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &when, nullptr) == 0);
}

}  // namespace tierd
