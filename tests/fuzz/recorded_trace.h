// Traces that runs have recorded, for targets that make something of them.
#pragma once

#include <string>
#include <vector>

namespace tierd {

// The files' bytes: of small models, under several strategies.
std::vector<std::string> recorded_traces();

}  // namespace tierd
