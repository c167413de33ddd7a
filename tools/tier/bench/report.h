// What was measured as one JSON object: {"run": …, "tests": [ … ], "peer": … or null}. Bytes, milliseconds
// and rates are those of one token unless their names say otherwise.
//
// The object of a sweep is {"run": what all points have in common, null in the place of what differs,
// "sweep": [{"key", "values"}], "points": [{"values": {key: value}, "run", "tests", "error": null}], "peer":
// null}; a point that failed has its error, a line, and neither run nor tests.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tools/tier/bench/arguments.h"
#include "tools/tier/bench/course.h"

namespace tierd {

// Describes the model, the configuration and the machine. The runtime must be loaded.
nlohmann::json run_json(const Arguments& arguments, Subject& subject);
nlohmann::json memory_json(const MemoryUse& use);

// `layers`: of the model, for hand-overs a layer.
nlohmann::json test_json(const Measurement& result, uint32_t layers);
// Ours beside the peer's: medians and their ratio.
nlohmann::json peer_json(const Arguments& arguments, const Measurement& result, uint64_t bytes_beside_peer);

}  // namespace tierd
