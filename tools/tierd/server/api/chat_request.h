// The messages of a chat in the bodies of /v1/chat/completions and /apply-template.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/result.h"
#include "core/model/text/chat_template.h"

namespace tierd {

// Writes the messages in the form of the model's family. An assistant's message at the end is left open, and
// the text continues it, as in llama-server. Errors name the message and its field: corrupt or
// invalid_argument.
Result<std::string> read_chat(const nlohmann::json& body, const ChatTemplate& form);

}  // namespace tierd
