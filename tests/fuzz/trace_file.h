// A trace as the targets' inputs have it: its header up to the first NUL, then a block of events. Both get
// checksums that fit, which cannot be guessed.
#pragma once

#include <string>
#include <string_view>

namespace tierd {

std::string trace_file(std::string_view input);

// The input that makes this file, of which the first block is taken.
std::string input_of_trace(std::string_view file);

}  // namespace tierd
