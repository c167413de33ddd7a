// Makes the report of measurements.
#pragma once

#include <vector>

#include "tools/measurement/arguments.h"
#include "tools/measurement/course.h"
#include "tools/measurement/figures.h"

namespace tierd {

// Describes the model, the configuration and the machine, without `memory`. The runtime must be loaded.
BenchRunFigures run_figures(const Arguments& arguments, Subject& subject);

// `layers` is the model's number of layers, for hand-overs a layer.
TestFigures test_figures(const Measurement& result, uint32_t layers);
// Medians of ours and of the peer, and their ratio.
PeerFigures peer_figures(const Arguments& arguments, const Measurement& result, uint64_t bytes_beside_peer);

}  // namespace tierd
