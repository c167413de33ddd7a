#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/text/vocab.h"

namespace tierd {

// The vocabulary of whatever has one: a tokenizer file (by name: *.json, *.model, tok*.bin), a store, or any
// model that open_source knows. Errors: theirs; not_found where a model brings no tokenizer.
Result<Vocab> load_vocab(const std::string& path);

}  // namespace tierd
