// Formats the report of a sweep (sweep_figures.h) as text.
#pragma once

#include <string>

#include "tools/lab/sweep/sweep_figures.h"
#include "tools/measurement/arguments.h"

namespace tierd {

// md: a table of the points. csv: a line for each test of each point, and for each point that failed.
std::string sweep_text(const SweepFigures& report, Format format);

}  // namespace tierd
