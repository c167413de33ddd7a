// Errors as OpenAI's and llama.cpp's clients read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"

namespace tierd {

inline constexpr const char* kJsonType = "application/json";
// The origins of errors in a client's request: an error of a field, whose detail begins with the field's name
// ("n: found 0, ..."), and a body that is no JSON object.
inline constexpr const char* kRequest = "request";
inline constexpr const char* kRequestBody = "request body";

struct ApiError {
  unsigned status = 500;
  std::string type;                       // "invalid_request_error"
  std::string message;                    // one line
  std::optional<std::string> param = {};  // the field that is at fault
  // The numbers of a prompt that does not fit its context.
  struct Overflow {
    uint64_t prompt_tokens = 0;
    uint64_t context = 0;
  };
  std::optional<Overflow> overflow = {};

  // {"error": {"code": 400, "message": ..., "type": ..., "param": null}}
  std::string body() const;
};

// Returns the error of an HTTP status.
ApiError api_error(unsigned status, std::string message, std::optional<std::string> param = {});
// Returns 400 for errors that the client can correct, 429 for a full queue and 500 for others. It never
// returns 501, because clients repeat such a request for seconds.
ApiError api_error(const Error& error);
// Returns the error in llama-server's words, which tell clients that a shorter prompt would fit. `at_least`:
// tokens were not counted to the end.
ApiError overflow_error(uint64_t prompt_tokens, bool at_least, uint64_t context, std::string param);

}  // namespace tierd
