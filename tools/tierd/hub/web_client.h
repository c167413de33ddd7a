// Downloads files over HTTP with libcurl, one at a time. Redirects follow tierd's own rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tierd {

struct CurlLibrary;

struct WebRequest {
  std::string url;
  std::string token = {};  // for the host of `url` alone, never for one that it redirects to; empty: none
  uint64_t from = 0;       // the first requested byte
  // A strong ETag: a file that has it is sent from `from` on, another one whole. Empty: any file.
  std::string if_range = {};
};

struct WebReply {
  long status = 0;                             // of the last answer; 0: there was no answer
  std::map<std::string, std::string> headers;  // of the last answer, names in lower case
  std::string url;                             // of the last answer, without its query, for messages
  bool reached = false;                        // a server has accepted a connection
  std::string broken;                          // why the connection ended early; empty: it did not

  const std::string& header(const std::string& name) const;
};

// Receives an answer: `begin` is called once before the first byte of an answer 200 or 206, then `bytes` for
// each part. An error of either ends the transfer and is returned.
struct WebSink {
  std::function<Status(const WebReply& reply)> begin;
  std::function<Status(std::span<const std::byte> bytes)> bytes;
};

struct WebPatience {
  long connect_seconds = 30;
  long idle_seconds = 30;  // with fewer than kSlowest bytes a second
};

class WebClient {
 public:
  explicit WebClient(WebPatience patience = {});
  ~WebClient();
  WebClient(const WebClient&) = delete;
  WebClient& operator=(const WebClient&) = delete;

  // [one thread at a time] Drops the bodies of answers other than 200 and 206. A connection that fails is no
  // error; `broken` in the reply has the reason. Errors: the sink's; invalid_argument for an invalid URL, and
  // for redirects in a circle, to another protocol, or from https to http; unsupported where the server's
  // certificate is not trusted; corrupt for headers without an end; those of curl_library().
  Result<WebReply> get(const WebRequest& request, const WebSink& sink);

 private:
  struct Transfer;
  Result<WebReply> hop(const CurlLibrary& curl, const WebRequest& request, bool trusted, const WebSink& sink,
                       std::string& redirect);

  WebPatience patience_;
  void* handle_ = nullptr;  // CURL*, owned; it keeps connections open
};

// Returns whether a redirect between these schemes is followed: to http and https alone, and never from https
// to http.
bool may_lead(std::string_view from_scheme, std::string_view to_scheme);

// Returns a URL without its secret parts: user, query, fragment.
std::string shown_url(const std::string& url);

// Returns a path in which %XX replaces each character that a URL may not have. Slashes stay.
std::string url_path(const std::string& path);

}  // namespace tierd
