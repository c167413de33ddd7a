// Formats the report (report.h) as text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/measurement/arguments.h"

namespace tierd {

// md: tables to read. csv: a line a test, a column a single value, named by its path ("run.model").
std::string to_text(const nlohmann::json& report, Format format);

// Parts of the tables, for reports of several runs. Return lines that begin with "- ".
std::string test_notes(const nlohmann::json& tests);
std::string run_lines(const nlohmann::json& run);
std::string memory_line(const nlohmann::json& run);
std::string machine_line(const nlohmann::json& run);
// Returns a line for each object, and before them one with the columns' names.
std::string to_csv(const std::vector<nlohmann::json>& lines);

}  // namespace tierd
