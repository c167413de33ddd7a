#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/text/vocab.h"

namespace tierd {

// Loads the vocabulary of a tokenizer file (by name: *.json, *.model, tok*.bin), a store, or any model that
// open_source reads. Errors: theirs; not_found if a model has no tokenizer.
Result<Vocab> load_vocab(const std::string& path);

}  // namespace tierd
