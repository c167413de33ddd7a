// The command line of tier-bench.
#pragma once

#include <optional>

#include "tools/measurement/arguments.h"

namespace tierd {

struct Parsed {
  std::optional<int> exit_code;  // set: all output is printed, exit with this code
  Arguments arguments;
};
Parsed parse_arguments(int argc, char** argv);

}  // namespace tierd
