// The tokenizer of a run.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/model/text/tokenizer.h"
#include "core/run/run_plan.h"

namespace tierd {

// The one that `config` names beside a store; otherwise the model's, which may have come from the file that
// is named. Errors: not_found where there is none; those of read_tokenizer_file and make_tokenizer.
Result<std::unique_ptr<Tokenizer>> model_tokenizer(const Config& config, const Store& store);

}  // namespace tierd
