// A picture as gnuplot is told to draw it.
#pragma once

#include <string>

#include "tools/lab/plot/plot_file.h"
#include "tools/tier/bench/picture.h"

namespace tierd {

// For gnuplot 5.4, drawing to its standard output: two panels over the same axis. With one line, above are a
// token's parts on top of each other, in bars where values are evenly spaced or names. Names from outside are
// in it as quoted text alone.
std::string gnuplot_script(const Picture& picture, PlotFile::Kind kind);

}  // namespace tierd
