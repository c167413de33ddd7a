// The tokenizer of a run.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/model/text/tokenizer.h"
#include "core/run/run_plan.h"

namespace tierd {

// Returns the tokenizer that `config` names for a store, else the model's, which the source may have read
// from a named file. Errors: not_found where there is none; those of read_tokenizer_file and make_tokenizer.
Result<std::unique_ptr<Tokenizer>> model_tokenizer(const Config& config, const Store& store);

}  // namespace tierd
