// Parts that several forms of an answer share: tokens, times, and the reason why a text has ended.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tools/tierd/server/api/generation.h"

namespace tierd {

// Returns a token as OpenAI's older answers write it: "bytes:\x.." where its bytes are no valid UTF-8.
std::string token_text(std::string_view bytes);
// Returns the number of characters. A byte that is part of no character counts as one.
size_t characters(std::string_view bytes);
nlohmann::json bytes_json(std::string_view bytes);
// Returns OpenAI's word for the end of a text: "stop", "length", "cancelled" or "error".
const char* reason_of(const EndEvent& end);
// Returns llama-server's word for the end of a text: "eos", "word", "limit" or "none".
const char* stop_type_of(const EndEvent& end);
double milliseconds(uint64_t ns);
// Returns the times under llama.cpp's names.
nlohmann::json timings_json(const GenerationTimes& times);

}  // namespace tierd
