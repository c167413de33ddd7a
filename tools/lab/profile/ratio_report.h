// What --search-ratio prints and writes.
#pragma once

#include <string>
#include <vector>

#include "tools/lab/profile/ratio_search.h"

namespace tierd {

// A table of all points, and which one was chosen. `names` [editions].
std::string ratio_table(const std::vector<RatioScore>& scores, const std::vector<std::string>& names);
// The chosen one as tables of a configuration; `source` says what it was found with. `keeps`: of how many
// neurons the predictor is told.
std::string ratio_toml(const RatioScore& chosen, const std::string& source, bool keeps);

}  // namespace tierd
