// A trace in the form of the targets' inputs: its header up to the first NUL, then a block of events.
// Matching checksums are added, because mutations cannot guess them.
#pragma once

#include <string>
#include <string_view>

namespace tierd {

std::string trace_file(std::string_view input);

// Returns the input that makes this file; its first block is taken.
std::string input_of_trace(std::string_view file);

}  // namespace tierd
