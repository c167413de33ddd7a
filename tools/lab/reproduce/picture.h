// Ours over the paper's, row by row, with what it may be.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/lab/plot/plot_file.h"

namespace tierd {

// For gnuplot 5.4, drawing to its standard output: the rows of `report` (reproduced_json) that have a figure
// of the paper. What stands in rows is in it as quoted text alone.
std::string picture_script(const nlohmann::json& report, PlotFile::Kind kind);

}  // namespace tierd
