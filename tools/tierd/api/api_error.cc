#include "tools/tierd/api/api_error.h"

#include <nlohmann/json.hpp>

namespace tierd {
namespace {

const char* type_of(unsigned status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 501:
      return "not_supported_error";
    case 503:
      return "unavailable_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

unsigned status_of(const Error& error) {
  switch (error.code) {
    case Code::no_space:
      return error.origin == "queue" ? 429 : 400;
    case Code::corrupt:
      // A request that is corrupt is the client's fault; a store's damage is the server's.
      return error.origin == kRequest ? 400 : 500;
    case Code::invalid_argument:
      return 400;
    case Code::unsupported:
      return 501;
    case Code::cancelled:
      return 503;
    default:
      return 500;
  }
}

}  // namespace

std::string ApiError::body() const {
  const nlohmann::json object = {
      {"error", {{"code", status}, {"message", message}, {"type", type}, {"param", nullptr}}}};
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ApiError api_error(unsigned status, std::string message) {
  return {status, type_of(status), std::move(message)};
}

ApiError api_error(const Error& error) {
  return api_error(status_of(error), error.line());
}

}  // namespace tierd
