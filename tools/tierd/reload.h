// The budget changes between two steps: by SIGHUP, when the configuration is read again, or as a client
// wants.
#pragma once

#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/run/runtime.h"
#include "tools/tierd/arguments.h"

namespace tierd {

class Reload {
 public:
  // From now on a SIGHUP is remembered, if there is a file to be read; else it keeps its usual meaning. One
  // in a process; `arguments` outlives it.
  explicit Reload(const Arguments& arguments);
  // [any thread] As if there had been one.
  static void ask();

  // [main thread, between two steps] If there was one: reads the file, `--set` over it, and tells on standard
  // error, a line for each change, what has become of it. A file that cannot be read, and a budget that
  // cannot be, change nothing.
  void look(Runtime& runtime);
  // [main thread, between two steps] Another capacity of one of the run's tiers, whoever wants it; told on
  // standard error. Until the file is read again, it counts as the file's. Errors: those of
  // Runtime::set_capacity.
  Status take_capacity(Runtime& runtime, const std::string& tier, const std::string& capacity);

 private:
  const Arguments& arguments_;
  Config in_force_;  // as file and `--set` had it
};

}  // namespace tierd
