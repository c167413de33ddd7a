// Formats the report (figures.h) as text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/measurement/arguments.h"
#include "tools/measurement/figures.h"

namespace tierd {

// md: tables to read. csv: a line a test, a column a single value, named by its path ("run.model").
std::string to_text(const BenchFigures& report, Format format);

// Parts of the tables, for reports of several runs. Return lines that begin with "- ".
std::string test_notes(const std::vector<TestFigures>& tests);
std::string run_lines(const BenchRunFigures& run);
std::string memory_line(const BenchRunFigures& run);
std::string machine_line(const BenchRunFigures& run);
// Returns a line for each object, and before them one with the columns' names.
std::string to_csv(const std::vector<nlohmann::json>& lines);

}  // namespace tierd
