// Writes a picture as a gnuplot script.
#pragma once

#include <string>

#include "tools/lab/plot/plot_file.h"
#include "tools/lab/sweep/picture.h"

namespace tierd {

// Returns a script for gnuplot 5.4 that draws to standard output: two panels over the same axis. For a single
// line the upper panel stacks the parts of a token's time, as bars if the values are evenly spaced or names.
// Names from outside occur only as quoted text.
std::string gnuplot_script(const Picture& picture, PlotFile::Kind kind);

}  // namespace tierd
