// The command line of tier-sweep.
#pragma once

#include <optional>

#include "tools/lab/plot/plot_file.h"
#include "tools/lab/sweep/sweep.h"
#include "tools/measurement/arguments.h"

namespace tierd {

struct SweepArguments : Arguments {
  Sweep sweep;
  std::optional<PlotFile> plot;
};

struct ParsedSweep {
  std::optional<int> exit_code;  // set: all output is printed, exit with this code
  SweepArguments arguments;
};
ParsedSweep parse_sweep_arguments(int argc, char** argv);

}  // namespace tierd
