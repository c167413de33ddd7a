// The verdict of a comparison, as JSON and as text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/run/runtime.h"
#include "tools/tier/compare/comparison.h"
#include "tools/tier/compare/kept_verdict.h"

namespace tierd {

// How the comparison was made, beside the properties of `subject`.
struct ComparisonFacts {
  uint32_t step_tokens = 1;           // of the subject
  std::string published;              // the path of the file as published; empty: it was not run
  std::string why_without_published;  // if it was not run
  KeptVerdict kept = {};
};

nlohmann::json comparison_json(const Runtime& subject, const Verdict& verdict, const ComparisonFacts& facts);
std::string comparison_text(const nlohmann::json& comparison);

}  // namespace tierd
