// The flags of llama-server and llama-cli: whoever has a command line for them finds each flag taken, or
// refused by its name with what to use instead. None is taken and does nothing.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// A command line in tierd's own words: aliases become the names that tierd has, and what tierd always does,
// or never, and is asked to, is left out. `takes_value`: whether a flag of tierd's own (as it is written,
// "-c", "--ctx-size") has a word behind it. Error: invalid_argument, with every flag that is refused, and
// why.
Result<std::vector<std::string>> from_llama(const std::vector<std::string>& words,
                                            const std::function<bool(std::string_view)>& takes_value);

}  // namespace tierd
