// Formats the report as text.
#pragma once

#include <string>

#include "tools/tier/bench/arguments.h"
#include "tools/tier/bench/figures.h"
#include "tools/tier/bench/sweep_figures.h"

namespace tierd {

// md: tables to read. csv: a line a test, a column a single value, named by its path ("run.model").
std::string to_text(const BenchFigures& report, Format format);
std::string to_text(const SweepFigures& report, Format format);

}  // namespace tierd
