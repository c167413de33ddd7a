// The status that a program leaves with.
#pragma once

#include "core/base/result.h"

namespace tierd {

inline constexpr int kFailed = 1;    // something went wrong on the way: a disk, an output, a faulty plugin
inline constexpr int kBadInput = 2;  // what we were given cannot be used

inline int exit_code(const Error& error) {
  switch (error.code) {
    case Code::io_error:
    case Code::plugin_fault:
    case Code::lost:
    case Code::internal:
    case Code::cancelled:
      return kFailed;
    default:
      return kBadInput;
  }
}

// Says the error's line on standard error, and returns the status.
int fail(const Error& error, int code);

}  // namespace tierd
