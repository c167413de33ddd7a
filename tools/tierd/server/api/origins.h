// Whom a server on somebody's machine listens to: a page in their browser can reach it, under any name that
// it gets resolved to this address (DNS rebinding), and can send what needs no permission.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tierd/server/http/http_server.h"

namespace tierd {

class Origins {
 public:
  // `bound`: the address or name that the server listens on. `hosts`: more names that clients may call it by;
  // "*": any. `pages`: origins ("https://chat.example") of pages that may read answers and send requests;
  // "*": any.
  Origins(std::string bound, std::vector<std::string> hosts, std::vector<std::string> pages);

  // Why a request is not listened to; nothing: it is.
  std::optional<std::string> refusal(const HttpRequest& head) const;
  // What tells a browser that its page may read the answer.
  HttpHeaders headers(const HttpRequest& head) const;

  // Whether the server goes by the name of a Host header: an address is no name that somebody else could have
  // resolved; else localhost, this machine's name, the bound one or one of `hosts`. Absent: it is no browser.
  bool is_called(std::string_view host) const;
  // Whether a request that a page of `origin` has sent (absent: none has) may change anything: its own page,
  // if it had any, or one of `pages`.
  bool may_send(std::string_view origin, std::string_view host) const;
  // Whether that page may read answers.
  bool may_read(std::string_view origin) const;

 private:
  std::vector<std::string> hosts_;
  std::vector<std::string> pages_;
};

// Whether a request that has a body says that it is JSON, or nothing. What a page can send without asking is
// not.
bool is_json(const HttpRequest& head);

}  // namespace tierd
