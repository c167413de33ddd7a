// Errors as OpenAI's and llama.cpp's clients read them.
#pragma once

#include <string>

#include "core/base/result.h"

namespace tierd {

inline constexpr const char* kJsonType = "application/json";
inline constexpr const char* kRequest = "request";  // the origin of errors in what a client has sent

struct ApiError {
  unsigned status = 500;
  std::string type;     // "invalid_request_error"
  std::string message;  // one line

  // {"error": {"code": 400, "message": ..., "type": ..., "param": null}}
  std::string body() const;
};

// By its status.
ApiError api_error(unsigned status, std::string message);
// 400 for what the client can mend, 501 for what tierd cannot, 429 for a full queue, 500 for the rest.
ApiError api_error(const Error& error);

}  // namespace tierd
