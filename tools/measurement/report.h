// The measurements as one JSON object: {"run": …, "tests": [ … ], "peer": … or null}. Bytes, milliseconds and
// rates are per token unless their names say otherwise.
//
// The object of a sweep is {"run": the values common to all points, null for values that differ, "sweep":
// [{"key", "values"}], "points": [{"values": {key: value}, "run", "tests", "error": null}], "peer": null}; a
// point that failed has its error, a line, and neither run nor tests.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tools/measurement/arguments.h"
#include "tools/measurement/course.h"

namespace tierd {

// Describes the model, the configuration and the machine. The runtime must be loaded.
nlohmann::json run_json(const Arguments& arguments, Subject& subject);
nlohmann::json memory_json(const MemoryUse& use);

// `layers` is the model's number of layers, for hand-overs a layer.
nlohmann::json test_json(const Measurement& result, uint32_t layers);
// Medians of ours and of the peer, and their ratio.
nlohmann::json peer_json(const Arguments& arguments, const Measurement& result, uint64_t bytes_beside_peer);

}  // namespace tierd
