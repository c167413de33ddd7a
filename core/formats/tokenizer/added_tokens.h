// Tokens that were added to a vocabulary after its tokenizer was made, as the files beside it list them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/result.h"
#include "core/model/text/vocab.h"

namespace tierd {

// Adds the tokens of added_tokens.json: an object of text to id. Errors, naming `file`: corrupt.
Status add_listed_tokens(const nlohmann::json& root, const std::string& file, Vocab& vocab);
// Adds the tokens of added_tokens_decoder in tokenizer_config.json: an object of id to text and rules, which
// replace those of a tokenizer.json. Errors, naming `file`: corrupt.
// `piped`: the vocabulary is a tokenizer.json's, so `normalized` tokens are matched after its normalizers.
Status add_decoder_tokens(const nlohmann::json& config, const std::string& file, bool piped, Vocab& vocab);

// Makes a token of the vocabulary a control token, which is matched as a whole in text.
void make_control(uint32_t token, Vocab& vocab);

}  // namespace tierd
