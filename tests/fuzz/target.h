// What a target is: one function, in a file of its own.
#pragma once

#include <string_view>

namespace tierd {

// Reads `input` as the target's kind of file and checks what promises.h says. What is broken aborts.
void fuzz(std::string_view input);

// Takes the text up to the first NUL off `input`, and the NUL: how targets that read several files part them.
// All of it where there is none.
std::string_view take_text(std::string_view& input);

}  // namespace tierd
