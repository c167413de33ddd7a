// Observes a run in which every pass is measured, and writes the measurements to a file.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/kernel/observer.h"

namespace tierd {

class ProfileFile : public SilentObserver {
 public:
  // Called after the last token. Error: io_error, of any write.
  virtual Status finish() = 0;
  // Returns a summary to print, after finish().
  virtual std::string report() const { return {}; }
};

}  // namespace tierd
