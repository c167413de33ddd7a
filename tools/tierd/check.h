// --check: describes a run from the model's headers alone, and writes no file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/model/text/vocab.h"
#include "core/run/run_plan.h"

namespace tierd {

// Returns the tiers' contents, the size of the store, the sites that are encoded anew, the bytes of a token
// and the expected speed. A number is null, with its reason beside it, where it depends on the text or was
// not measured. `vocab`: that of the run's tokenizer. Errors: those of Runtime::create and machine_rates.
Result<nlohmann::json> check_json(RunPlan plan, const RuntimeOptions& options, const Vocab& vocab);
std::string check_text(const nlohmann::json& check);

}  // namespace tierd
