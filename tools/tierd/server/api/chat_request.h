// The messages of a chat, as /v1/chat/completions and /apply-template have them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/result.h"
#include "core/model/text/chat_template.h"

namespace tierd {

// Writes the messages in the form of the model's family. An assistant's message at the end is not closed: the
// text goes on with it, as llama-server has it. Errors name the message and its field: corrupt or
// invalid_argument.
Result<std::string> read_chat(const nlohmann::json& body, const ChatTemplate& form);

}  // namespace tierd
