// --check: what a run would be, from the model's headers alone. Nothing is written.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/model/text/vocab.h"
#include "core/run/run_plan.h"

namespace tierd {

// What lies where, what the store takes on its disk, what is encoded anew, the bytes of a token and the speed
// that comes of them; null, with the reason beside it, where that depends on the text or nobody has measured
// it. `vocab`: of the tokenizer that the run would have. Errors: those of Runtime::create and machine_rates.
Result<nlohmann::json> check_json(RunPlan plan, const RuntimeOptions& options, const Vocab& vocab);
std::string check_text(const nlohmann::json& check);

}  // namespace tierd
