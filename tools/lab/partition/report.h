// The evaluation of a partition, as JSON and as text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/lab/partition/methods.h"

namespace tierd {

nlohmann::json partition_json(const PartitionProblem& problem, PartitionMethod method,
                              const PartitionResult& result);
std::string partition_text(const nlohmann::json& partition);

}  // namespace tierd
