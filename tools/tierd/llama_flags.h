// Accepts the command lines of llama-server and llama-cli. Each of their flags is translated, or refused with
// an alternative. No flag is accepted without effect.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// Returns the command line in tierd's own flags. Aliases are translated, and flags that ask for what tierd
// always or never does are left out. `takes_value`: returns whether a flag of tierd ("-c", "--ctx-size") has
// a word behind it. Error: invalid_argument, which names every refused flag with its reason.
Result<std::vector<std::string>> from_llama(const std::vector<std::string>& words,
                                            const std::function<bool(std::string_view)>& takes_value);

}  // namespace tierd
