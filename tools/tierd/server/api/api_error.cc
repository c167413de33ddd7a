#include "tools/tierd/server/api/api_error.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

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
      // Code::corrupt of a request is the client's fault; other origins are damage of the store.
      return error.origin == kRequest || error.origin == kRequestBody ? 400 : 500;
    case Code::invalid_argument:
    case Code::unsupported:
      return 400;
    case Code::cancelled:
      return 503;
    default:
      return 500;
  }
}

// Returns the field that the detail of a request's error begins with.
std::optional<std::string> param_of(const Error& error) {
  const size_t end = error.detail.find(": ");
  if (error.origin != kRequest || end == std::string::npos) return std::nullopt;
  return error.detail.substr(0, end);
}

}  // namespace

std::string ApiError::body() const {
  nlohmann::json error = {{"code", status},
                          {"message", message},
                          {"type", type},
                          {"param", param ? nlohmann::json(*param) : nlohmann::json()}};
  if (overflow) {
    error["n_prompt_tokens"] = overflow->prompt_tokens;
    error["n_ctx"] = overflow->context;
  }
  const nlohmann::json object = {{"error", std::move(error)}};
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ApiError api_error(unsigned status, std::string message, std::optional<std::string> param) {
  return {status, type_of(status), std::move(message), std::move(param)};
}

ApiError api_error(const Error& error) {
  return api_error(status_of(error), error.line(), param_of(error));
}

ApiError overflow_error(uint64_t prompt_tokens, bool at_least, uint64_t context, std::string param) {
  ApiError error{400, "exceed_context_size_error",
                 fmt::format("the request ({}{} tokens) exceeds the available context size ({} tokens); "
                             "shorten it, or start the server with a larger one (-c)",
                             at_least ? "at least " : "", prompt_tokens, context),
                 std::move(param)};
  error.overflow = ApiError::Overflow{prompt_tokens, context};
  return error;
}

}  // namespace tierd
