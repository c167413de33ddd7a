// Reads the environment variables of huggingface_hub.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"

namespace tierd {

// Returns the value of a variable that is set and not empty.
std::optional<std::string> variable(const char* name);
// Returns the value as a path, in which a leading "~/" is the user's home.
std::optional<std::string> path_variable(const char* name);

// Returns the folder of tokens and caches: $HF_HOME, $XDG_CACHE_HOME/huggingface or ~/.cache/huggingface.
// Error: not_found where none of the variables, nor HOME, is set.
Result<std::string> hub_home();

// Returns the hub's URL without a slash at the end: $HF_ENDPOINT or https://huggingface.co. Error:
// invalid_argument for a URL that is not http or https.
Result<std::string> hub_endpoint();

// Returns the user's token: `given` (of the command line), else $HF_TOKEN, $HUGGING_FACE_HUB_TOKEN, or the
// file that `hf auth login` writes ($HF_TOKEN_PATH, else `token` in hub_home). Empty: no token. Error:
// invalid_argument for a text that cannot be a token. No message contains the token.
Result<std::string> hub_token(const std::string& given);

// Returns whether $HF_HUB_OFFLINE or $TRANSFORMERS_OFFLINE forbids the network.
bool hub_offline();

}  // namespace tierd
