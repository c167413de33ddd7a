// The fields that clients of OpenAI's API, llama-server, vLLM and text-generation-inference send. Each field
// is read, is known to change no answer, or is refused.
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
  chat_text,   // /apply-template: a chat's body, of which only the messages count
  tokenize,
  detokenize,
  capacity,  // the capacity of a tier
};

// Returns the error of a field. Its line begins with kRequest and the field's name, which api_error takes for
// "param".
Error field_error(const std::string& field, const std::string& detail);

// Returns the beginning of a value, for error messages.
std::string shown(const nlohmann::json& value);

// Checks every field of the object: the form reads it, it changes no answer, or its value is neutral. Null is
// neutral for every field. Error: invalid_argument, which names the field.
Status check_fields(const nlohmann::json& body, BodyForm form);
// Checks an object inside the body, which may have only the fields `reads`. `prefix`: "stream_options.".
Status check_fields(const nlohmann::json& object, const std::string& prefix,
                    std::initializer_list<const char*> reads);

}  // namespace tierd
