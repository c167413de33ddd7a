// --figures: the page of all figures that tierd, its server and tier bench show.
#pragma once

#include <string>

namespace tierd {

// Returns docs/figures.md.
std::string figures_page();

}  // namespace tierd
