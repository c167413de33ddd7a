// The outcome of a row.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/lab/reproduce/played_run.h"
#include "tools/lab/reproduce/reproduction.h"

namespace tierd {

struct Outcome {
  std::optional<double> ours;
  std::optional<double> error;  // relative to the paper's figure, per cent
  bool passes = true;           // also true for rows that are not judged
};

// `runs`: the figures of the runs that the row names. Error: not_found, naming the known figures.
Result<Outcome> judge(const Row& row, const std::map<std::string, Figures>& runs);

// A reproduction with the outcomes, row by row.
struct Reproduced {
  Reproduction reproduction;
  std::vector<Outcome> outcomes;  // [rows]
  std::map<std::string, Figures> runs;
};

nlohmann::json reproduced_json(const std::vector<Reproduced>& papers, uint64_t seed);
// Returns a table for each paper.
std::string reproduced_markdown(const nlohmann::json& report);

}  // namespace tierd
