// The verdict of a comparison, for machines and for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/run/runtime.h"
#include "tools/tier/compare/comparison.h"
#include "tools/tier/compare/kept_verdict.h"

namespace tierd {

// How the comparison was made, beside what `subject` knows itself.
struct ComparisonFacts {
  uint32_t step_tokens = 1;           // of the subject
  std::string published;              // the path of the file as published; empty: it was not run
  std::string why_without_published;  // where it was not
  KeptVerdict kept = {};
};

nlohmann::json comparison_json(const Runtime& subject, const Verdict& verdict, const ComparisonFacts& facts);
std::string comparison_text(const nlohmann::json& comparison);

}  // namespace tierd
