// Draws our figures relative to the paper's, row by row, with the accepted ranges.
#pragma once

#include <string>

#include "tools/lab/plot/plot_file.h"
#include "tools/lab/reproduce/outcome.h"

namespace tierd {

// Returns a script for gnuplot 5.4 that draws to standard output: the rows of `report` that
// have a figure of the paper. Text of rows occurs only as quoted text.
std::string picture_script(const ReproducedFigures& report, PlotFile::Kind kind);

}  // namespace tierd
