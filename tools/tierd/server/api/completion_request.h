// Reads a request for texts from the JSON of /v1/completions, /v1/chat/completions (OpenAI's fields and
// llama.cpp's) and llama-server's /completion.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/chat_template.h"
#include "core/model/text/tokenizer.h"
#include "tools/tierd/server/api/generation.h"
#include "tools/tierd/server/api/request_fields.h"
#include "tools/tierd/server/api/token_bound.h"

namespace tierd {

// A prompt that does not fit the context.
struct TooLongPrompt {
  uint64_t tokens = 0;
  bool at_least = false;  // a lower bound: the prompt was not tokenized
};

struct CompletionRequest {
  std::vector<std::vector<uint32_t>> prompts;  // at least one, each of at least one token
  uint32_t n = 1;                              // texts for each prompt
  bool random_seed = false;                    // the client gave none
  GenerationOptions generation;
  bool stream = false;
  bool include_usage = false;                  // stream_options: a last chunk with the usage
  bool return_progress = false;                // of the prompt, in a stream
  bool timings_per_token = false;              // in a stream
  bool echo = false;                           // the text begins with the prompt
  bool return_tokens = false;                  // llama-server's: the answer has the numbers of the tokens
  std::optional<TooLongPrompt> too_long = {};  // set: the other fields are invalid
};

// Defaults of a request's fields, and bounds of every request.
struct CompletionDefaults {
  GenerationOptions generation;
  uint32_t most_texts = 64;  // prompts times n
  uint32_t context = UINT32_MAX;
  const TokenBound* bound = nullptr;  // refuses a text before it is tokenized; NULL: each is tokenized
};

// Reads the body of `form`. Errors name the field: corrupt or invalid_argument. `chat`: the form of a chat's
// messages; NULL for forms that have a prompt.
Result<CompletionRequest> read_completion(const nlohmann::json& body, const Tokenizer& tokenizer,
                                          const CompletionDefaults& defaults, BodyForm form,
                                          const ChatTemplate* chat = nullptr);

// Returns the bytes that the request takes beside the budget until it is answered: prompts and options, which
// its texts share; stop strings and penalties of each text; and echoed prompts.
uint64_t request_bytes(const CompletionRequest& request);

}  // namespace tierd
