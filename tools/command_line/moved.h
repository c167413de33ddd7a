// Refuses arguments that another command takes now.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tierd {

// Writes one line to standard error, with the command that replaces the refused one as a shell takes it.
// Returns the exit status 2. `what`: the argument of `program` that is refused.
int refuse_moved(std::string_view program, std::string_view what, const std::vector<std::string>& command);

// Returns which of `options` ("--plot") the words have, alone or as "--plot=x.svg"; "" if they have none.
std::string_view find_option(const std::vector<std::string>& words,
                             const std::vector<std::string_view>& options);

}  // namespace tierd
