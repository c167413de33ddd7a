// The environment says about the hub what it says to huggingface_hub.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"

namespace tierd {

// Returns the value of a variable, if it is set and not empty.
std::optional<std::string> variable(const char* name);
// Returns the same of a path, in which a leading "~/" is the user's home.
std::optional<std::string> path_variable(const char* name);

// Returns the folder of tokens and caches: $HF_HOME, $XDG_CACHE_HOME/huggingface or ~/.cache/huggingface.
// Error: not_found where none of the variables, nor HOME, is set.
Result<std::string> hub_home();

// Returns where models come from, without a slash at the end: $HF_ENDPOINT or https://huggingface.co. Error:
// invalid_argument for what is no http or https URL.
Result<std::string> hub_endpoint();

// Returns the token of who asks: `given` (of the command line), else $HF_TOKEN, $HUGGING_FACE_HUB_TOKEN, or
// the file that `hf auth login` writes ($HF_TOKEN_PATH, else `token` in hub_home); empty: nobody. Error:
// invalid_argument where it cannot be a token. No message ever holds it.
Result<std::string> hub_token(const std::string& given);

// Tells whether $HF_HUB_OFFLINE or $TRANSFORMERS_OFFLINE asks for no network.
bool hub_offline();

}  // namespace tierd
