// What a comparison has found, for machines and for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/run/runtime.h"
#include "tools/tier-compare/comparison.h"

namespace tierd {

nlohmann::json comparison_json(const Runtime& subject, const Loss& loss);
std::string comparison_text(const nlohmann::json& comparison);

}  // namespace tierd
