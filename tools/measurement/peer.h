// Runs another program on the same task, as its users run it, and parses its rate from its output.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tierd {

// A regular expression (PCRE2) whose first group is a number.
class RatePattern {
 public:
  // Error: invalid_argument, naming the place in the expression.
  static Result<RatePattern> compile(const std::string& expression);
  // Returns the number of the first match in `output`. Errors: not_found; corrupt if it is not positive.
  Result<double> find(std::string_view output) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

struct PeerRun {
  double rate = 0;
  double seconds = 0;  // of the whole command
};
// Runs `command` by the shell and waits. Errors carry the last lines of its output (stdout and stderr
// together): internal, if its exit status is not 0; those of RatePattern::find.
Result<PeerRun> run_peer(const std::string& command, const RatePattern& pattern);

}  // namespace tierd
