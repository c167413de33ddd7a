// The budget and the strategies change between two steps: by SIGHUP, when the configuration is read again, or
// as a client asks.
#pragma once

#include <nlohmann/json_fwd.hpp>
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

  // [main thread, between two steps] If there was one: reads the file, `--set` over it, and says on standard
  // error, a line for each change, whether it is in force. A file that cannot be read, and a budget or a
  // strategy that cannot be, change nothing. A strategy that is quarantined for good is made anew.
  void look(Runtime& runtime);
  // [main thread, between two steps] Another capacity of one of the run's tiers, whoever wants it; told on
  // standard error. Until the file is read again, it counts as the file's. Returns what is known of the loss
  // with it, as known_loss has it. Errors: those of Runtime::set_capacity and tell_loss.
  Result<nlohmann::json> take_capacity(Runtime& runtime, const std::string& tier,
                                       const std::string& capacity);

 private:
  void take_file(Runtime& runtime);
  // The arguments that would start the run as it is now.
  Arguments present(const Runtime& runtime) const;

  const Arguments& arguments_;
  Config in_force_;  // as file and `--set` had it
};

}  // namespace tierd
