// Reads the small files beside a tokenizer that name the tokens that begin and end a text.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/text/vocab.h"

namespace tierd {

// Reads those of added_tokens.json, tokenizer_config.json, special_tokens_map.json and generation_config.json
// that exist in the folder of `path`, and its chat templates: further tokens, bos, eos, add_bos, the rules
// about spaces, end_tokens and the templates. Afterwards eos is one of end_tokens. Errors name the file and
// key: corrupt, unsupported.
Status apply_special_token_files(const std::string& path, Vocab& vocab);

}  // namespace tierd
