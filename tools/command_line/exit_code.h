// The exit status of a program.
#pragma once

#include "core/base/result.h"

namespace tierd {

inline constexpr int kFailed = 1;    // a failure during the work: a disk, an output, a faulty plugin
inline constexpr int kBadInput = 2;  // input that cannot be used

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

// Writes the error's line to standard error and returns the status.
int fail(const Error& error, int code);

}  // namespace tierd
