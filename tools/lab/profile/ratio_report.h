// The output of --search-ratio.
#pragma once

#include <string>
#include <vector>

#include "tools/lab/profile/ratio_search.h"

namespace tierd {

// Returns a table of all points, with the chosen one marked. `names` [editions].
std::string ratio_table(const std::vector<RatioScore>& scores, const std::vector<std::string>& names);
// Returns the chosen point as tables of a configuration; `source` says how it was found. `keeps`: the
// predictor gets the number of neurons, too.
std::string ratio_toml(const RatioScore& chosen, const std::string& source, bool keeps);

}  // namespace tierd
