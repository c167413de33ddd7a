// libcurl gets files over HTTP, one at a time; redirects are followed under our own rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tierd {

struct CurlLibrary;

struct WebRequest {
  std::string url;
  std::string token = {};  // shown to the host of `url` alone, never to one that it redirects to; empty: none
  uint64_t from = 0;       // the first byte that is wanted
  // A strong ETag: bytes from `from` are wanted of this file, and all of another. Empty: of any file.
  std::string if_range = {};
};

struct WebReply {
  long status = 0;                             // the last answer's; 0: there was none
  std::map<std::string, std::string> headers;  // of it, names in small letters
  std::string url;                             // who gave it, as people may read it: without query
  bool reached = false;                        // whether a server was spoken to at all
  std::string broken;                          // why the connection ended early; empty: it did not

  const std::string& header(const std::string& name) const;
};

// This is who takes what comes: `begin` is called once, before the first byte of an answer 200 or 206; then
// `bytes` for each part. An error of theirs ends the transfer and is returned.
struct WebSink {
  std::function<Status(const WebReply& reply)> begin;
  std::function<Status(std::span<const std::byte> bytes)> bytes;
};

struct WebPatience {
  long connect_seconds = 30;
  long idle_seconds = 30;  // without kSlowest bytes a second
};

class WebClient {
 public:
  explicit WebClient(WebPatience patience = {});
  ~WebClient();
  WebClient(const WebClient&) = delete;
  WebClient& operator=(const WebClient&) = delete;

  // [one thread at a time] Bodies of other answers than 200 and 206 are thrown away. A connection that fails
  // is no error but `broken` in the reply. Errors: the sink's; invalid_argument for a URL that cannot be
  // read, for redirects that go round in circles, to another protocol, or from https to http; unsupported
  // where the server's certificate is not to be trusted; corrupt for headers without an end; those of
  // curl_library().
  Result<WebReply> get(const WebRequest& request, const WebSink& sink);

 private:
  struct Transfer;
  Result<WebReply> hop(const CurlLibrary& curl, const WebRequest& request, bool trusted, const WebSink& sink,
                       std::string& redirect);

  WebPatience patience_;
  void* handle_ = nullptr;  // CURL*, owned; connections are kept in it
};

// Tells whether a redirect from a URL of one scheme to one of another is followed: to http and https alone,
// and never from https to http.
bool may_lead(std::string_view from_scheme, std::string_view to_scheme);

// Returns a URL without what may be secret in it: user, query, fragment.
std::string shown_url(const std::string& url);

// Returns a path in which each character that may not stand in a URL is %XX; slashes stay.
std::string url_path(const std::string& path);

}  // namespace tierd
