// Sends JSON, and errors in the form of OpenAI's API.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/tierd/server/api/api_error.h"
#include "tools/tierd/server/http/http_server.h"

namespace tierd {

// Returns the JSON text. Bytes that are no UTF-8 become U+FFFD.
std::string text_of(const nlohmann::json& object);

void send(HttpReply& reply, const nlohmann::json& object);
// Sends the error with the headers that its status requires.
void send(HttpReply& reply, const ApiError& error);

}  // namespace tierd
