// What a client asks for, read from the JSON of /v1/completions and /v1/chat/completions (OpenAI's fields,
// and llama.cpp's beside them).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/text/chat_template.h"
#include "core/text/tokenizer.h"
#include "tools/tierd/api/generation.h"

namespace tierd {

struct CompletionRequest {
  std::vector<std::vector<uint32_t>> prompts;  // at least one, each of at least one token
  uint32_t n = 1;                              // texts for each of them
  bool random_seed = false;                    // the client gave none
  GenerationOptions generation;
  bool stream = false;
  bool include_usage = false;      // stream_options: a chunk of its own in the end
  bool return_progress = false;    // of the prompt, in the stream
  bool timings_per_token = false;  // in the stream
  bool echo = false;               // the prompt begins the text
};

// What a request that does not say otherwise gets, and what none may exceed.
struct CompletionDefaults {
  GenerationOptions generation;
  uint32_t most_texts = 64;  // prompts times n
  uint32_t context = UINT32_MAX;
};

// The messages of a chat, as /v1/chat/completions and /apply-template have them, in the form of the family.
Result<std::string> read_chat(const nlohmann::json& body, const ChatTemplate& form);

// Errors name the field: corrupt or invalid_argument for what is wrong with it; unsupported for one whose
// meaning would have to be ignored. `chat`: the form of its messages; NULL for a completion, which has a
// prompt.
Result<CompletionRequest> read_completion(const nlohmann::json& body, const Tokenizer& tokenizer,
                                          const CompletionDefaults& defaults, const ChatTemplate* chat);

}  // namespace tierd
