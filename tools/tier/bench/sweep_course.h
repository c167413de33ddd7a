// The order of a sweep: its points in turn, each on a runtime of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "tools/tier/bench/arguments.h"

namespace tierd {

// Calls `once` with 0, 1, 2, 0, 1, 2: `rounds` times with each, so that what changes on the machine in the
// meantime meets all of them. After an error a point is left out. The errors of all points.
std::vector<std::optional<Error>> take_turns(size_t points, uint32_t rounds,
                                             const std::function<Status(size_t point)>& once);

// What can be known before anything is measured: that the stores are there (they are made, if need be), that
// plugins take what they are told. The error of the first point that has one.
Status check_sweep(const Arguments& arguments);

// The report, see report.h. A point that fails is a part of it: its error.
nlohmann::json measure_sweep(const Arguments& arguments);

}  // namespace tierd
