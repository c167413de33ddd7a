#include "tools/tierd/server/api/api_reply.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace tierd {

std::string text_of(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void send(HttpReply& reply, const nlohmann::json& object) {
  reply.send(200, kJsonType, text_of(object));
}

void send(HttpReply& reply, const ApiError& error) {
  HttpHeaders headers;
  if (error.status == 401) headers.emplace_back("WWW-Authenticate", "Bearer");
  if (error.status == 429 || error.status == 503) headers.emplace_back("Retry-After", "1");
  reply.send(error.status, kJsonType, error.body(), std::move(headers));
}

}  // namespace tierd
