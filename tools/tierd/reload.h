// Changes the budget and the strategies between two steps: on SIGHUP, which reads the configuration again, or
// on a client's request.
#pragma once

#include <string>

#include "core/config/config.h"
#include "core/run/runtime.h"
#include "tools/tierd/arguments.h"
#include "tools/tierd/known_loss.h"

namespace tierd {

class Reload {
 public:
  // From now on a SIGHUP is noted, if there is a file to read; otherwise the signal keeps its default action.
  // One object in a process; `arguments` must outlive it.
  explicit Reload(const Arguments& arguments);
  // [any thread] Has the effect of a SIGHUP.
  static void ask();

  // [main thread, between two steps] After a SIGHUP: reads the file, applies `--set`, and prints a line on
  // standard error for each change, in force or refused. A file that cannot be read, and a budget or strategy
  // that cannot be set, change nothing. A strategy that is quarantined for good is created anew.
  void look(Runtime& runtime);
  // [main thread, between two steps] Sets the capacity of a tier, and prints a line on standard error. It
  // replaces the file's value until the file is read again. Returns the known loss with the new capacity, as
  // known_loss does. Errors: those of Runtime::set_capacity and tell_loss.
  Result<std::optional<KnownLoss>> take_capacity(Runtime& runtime, const std::string& tier,
                                                 const std::string& capacity);

 private:
  void take_file(Runtime& runtime);
  // Returns the arguments that would start the run in its present state.
  Arguments present(const Runtime& runtime) const;

  const Arguments& arguments_;
  Config in_force_;  // the file with `--set`, as far as it is in force
};

}  // namespace tierd
