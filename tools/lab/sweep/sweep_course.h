// The order of a sweep: its points alternate, each on a runtime of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "tools/lab/sweep/arguments.h"
#include "tools/lab/sweep/sweep_figures.h"

namespace tierd {

// Calls `once` with 0, 1, 2, 0, 1, 2: `rounds` times with each, so that changes of the machine affect all
// points. A point is skipped after an error. Returns the errors of all points.
std::vector<std::optional<Error>> take_turns(size_t points, uint32_t rounds,
                                             const std::function<Status(size_t point)>& once);

// Checks everything that can be checked before measuring: makes missing stores, and checks the plugins'
// parameters. Returns the error of the first point that has one.
Status check_sweep(const SweepArguments& arguments);

// Returns the report. A point that fails appears with its error.
SweepFigures measure_sweep(const SweepArguments& arguments);

}  // namespace tierd
