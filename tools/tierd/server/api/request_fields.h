// The fields that clients of OpenAI's API, llama-server, vLLM and text-generation-inference send, and what
// tierd makes of each: nothing that would change the answer is passed over.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/result.h"

namespace tierd {

// The form of a request's body.
enum class BodyForm : uint8_t {
  completion,  // /v1/completions
  chat,        // /v1/chat/completions
  native,      // llama-server's /completion
  chat_text,   // /apply-template: a chat's, of which the messages count
  tokenize,
  detokenize,
  capacity,  // of a tier
};

// Error in a field of a request. Its line begins with kRequest and the field's name, which api_error finds
// there for "param".
Error field_error(const std::string& field, const std::string& detail);

// Returns the beginning of a value as errors show it.
std::string shown(const nlohmann::json& value);

// Checks every field of the object: it is one that this form reads, it changes no answer, or it has a value
// that asks for nothing. Null is such a value of any field. Error: invalid_argument naming the field.
Status check_fields(const nlohmann::json& body, BodyForm form);
// The same of an object inside of the body, which may have the fields `reads` and no other. `prefix`:
// "stream_options.".
Status check_fields(const nlohmann::json& object, const std::string& prefix,
                    std::initializer_list<const char*> reads);

}  // namespace tierd
