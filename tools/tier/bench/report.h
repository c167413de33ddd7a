// Makes the report of measurements.
#pragma once

#include "tools/tier/bench/arguments.h"
#include "tools/tier/bench/course.h"
#include "tools/tier/bench/figures.h"

namespace tierd {

// Describes the model, the configuration and the machine, without `memory`. The runtime must be loaded.
RunFigures run_figures(const Arguments& arguments, Subject& subject);

// `layers` is the model's number of layers, for hand-overs a layer.
TestFigures test_figures(const Measurement& result, uint32_t layers);
// Medians of ours and of the peer, and their ratio.
PeerFigures peer_figures(const Arguments& arguments, const Measurement& result, uint64_t bytes_beside_peer);

}  // namespace tierd
