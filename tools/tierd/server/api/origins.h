// Decides which clients the server answers. A page in a local user's browser can reach the server under any
// name that it makes resolve to this address (DNS rebinding), and can send simple requests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tierd/server/http/http_server.h"

namespace tierd {

class Origins {
 public:
  // `bound`: the address or name that the server listens on. `hosts`: more names of the server; "*": any
  // name. `pages`: origins ("https://chat.example") of pages that may send requests and read answers; "*":
  // any page.
  Origins(std::string bound, std::vector<std::string> hosts, std::vector<std::string> pages);

  // Returns why a request is refused, or no value where it is accepted.
  std::optional<std::string> refusal(const HttpRequest& head) const;
  // Returns the headers that allow a page of `pages` to read the answer.
  HttpHeaders headers(const HttpRequest& head) const;

  // Returns whether a Host header names this server: an address (which DNS rebinding cannot use), localhost,
  // this machine's name, the bound name or one of `hosts`. An absent one passes: browsers send it.
  bool is_called(std::string_view host) const;
  // Returns whether a request may change anything: no page has sent it (`origin` is empty), or the server's
  // own page or one of `pages` has.
  bool may_send(std::string_view origin, std::string_view host) const;
  // Returns whether a page of `origin` may read answers.
  bool may_read(std::string_view origin) const;

 private:
  std::vector<std::string> hosts_;
  std::vector<std::string> pages_;
};

// Returns whether the request needs no body, or its Content-Type is JSON or absent. The types that a page can
// send without a preflight are refused.
bool is_json(const HttpRequest& head);

}  // namespace tierd
