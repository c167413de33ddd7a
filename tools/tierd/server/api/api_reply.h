// An answer in JSON, and an error as OpenAI's clients read it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/tierd/server/api/api_error.h"
#include "tools/tierd/server/http/http_server.h"

namespace tierd {

// Without what is no UTF-8, which becomes U+FFFD.
std::string text_of(const nlohmann::json& object);

void send(HttpReply& reply, const nlohmann::json& object);
// With the headers that its status calls for.
void send(HttpReply& reply, const ApiError& error);

}  // namespace tierd
