// Another program that does the same: run as its users run it, its rate taken from what it prints.
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
  // The first match in `output`. Errors: not_found; corrupt when the group is no positive number.
  Result<double> find(std::string_view output) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

struct PeerRun {
  double rate = 0;
  double seconds = 0;  // all of the command
};
// Runs `command` by the shell and waits. Errors carry the last lines of its output (stdout and stderr
// together): internal, when it ends with another status than 0; those of RatePattern::find.
Result<PeerRun> run_peer(const std::string& command, const RatePattern& pattern);

}  // namespace tierd
