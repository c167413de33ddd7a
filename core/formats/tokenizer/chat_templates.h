// Reads the chat templates of a Hugging Face folder.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/result.h"
#include "core/model/text/vocab.h"

namespace tierd {

// Sets the chat templates of `vocab` from the files in the folder of `path`: chat_template.jinja, else the
// field of tokenizer_config.json (`config`; NULL: no such file), else chat_template.json; and of
// additional_chat_templates the one for tools. Errors name the file and the field: corrupt, io_error.
Status read_chat_templates(const std::string& path, const nlohmann::json* config, Vocab& vocab);

}  // namespace tierd
