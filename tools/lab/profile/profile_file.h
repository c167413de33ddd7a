// What listens to a run in which every pass is measured, and keeps what it hears in a file.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/kernel/observer.h"

namespace tierd {

class ProfileFile : public SilentObserver {
 public:
  // When all tokens have passed. Error: io_error, of any write.
  virtual Status finish() = 0;
  // What people want to see of it, after that.
  virtual std::string report() const { return {}; }
};

}  // namespace tierd
