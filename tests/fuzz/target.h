// A target is one function in a file of its own.
#pragma once

#include <string_view>

namespace tierd {

// Reads `input` as the target's kind of file and checks the promises of promises.h. A broken promise aborts.
void fuzz(std::string_view input);

// Removes the text up to the first NUL, and the NUL, from `input` and returns the text; without a NUL, all of
// it. Targets that read several files separate them in this way.
std::string_view take_text(std::string_view& input);

}  // namespace tierd
