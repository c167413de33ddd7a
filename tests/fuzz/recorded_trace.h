// Traces recorded from runs, for targets that process traces.
#pragma once

#include <string>
#include <vector>

namespace tierd {

// Returns the bytes of traces of small models under several strategies.
std::vector<std::string> recorded_traces();

}  // namespace tierd
