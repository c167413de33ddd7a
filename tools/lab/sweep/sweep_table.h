// A table of the points of a sweep.
#pragma once

#include <string>

#include "tools/lab/sweep/sweep_figures.h"

namespace tierd {

// A row for each point and test; for a failed point, its error.
std::string sweep_table(const SweepFigures& report);

}  // namespace tierd
