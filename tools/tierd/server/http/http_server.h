// HTTP/1.1 for a handful of clients that may be slow, broken or hostile: every wait has an end, every size a
// limit. It knows nothing of models.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace tierd {

struct HttpRequest {
  std::string id;             // X-Request-Id, where the client gave a sound one, else made here
  std::string method;         // "POST"
  std::string path;           // of the target, before '?'
  std::string authorization;  // these headers; empty where absent
  std::string api_key;        // X-Api-Key
  std::string host;
  std::string origin;
  std::string content_type;
  std::string body;
  // What the body takes of the bound for all (Limits::all_bodies_bytes), for as long as somebody has it.
  std::shared_ptr<const void> room = {};
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The answer to one request: whole, or begun and written piece by piece. All calls on the server's thread; it
// may be let go of on any, before the server goes.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  // With its length. Nothing after it.
  virtual void send(unsigned status, std::string_view content_type, std::string body,
                    HttpHeaders headers = {}) = 0;
  // A stream; `ping` is written whenever there was nothing for a while, empty: nothing is.
  virtual void begin(unsigned status, std::string_view content_type, std::string ping) = 0;
  virtual void write(std::string data) = 0;
  virtual void end() = 0;
  // Called once, if the client leaves before the end, or reads so slowly that too much waits for it: nobody
  // will hear the rest.
  virtual void on_gone(std::function<void()> gone) = 0;
};

// A request that is over, for logs.
struct HttpRecord {
  std::string id;
  std::string method;  // empty, as is the path, where it was no HTTP
  std::string path;
  unsigned status = 0;  // 0: there was no answer
  bool heard = false;   // to its end
  std::chrono::nanoseconds took{0};
};

// What answers; all calls on the server's thread.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Says whether a request is taken whose body has not arrived yet. It is false where the reply has been
  // sent, and the body is of no use.
  virtual bool admit(const HttpRequest& /*head*/, HttpReply& /*reply*/) { return true; }
  // It keeps the reply for as long as it writes to it. One that is let go of unanswered closes the
  // connection.
  virtual void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) = 0;
  // Headers that the answer to such a request has beside its own, whatever the answer is.
  virtual HttpHeaders headers(const HttpRequest& /*head*/) const { return {}; }
  virtual void answered(const HttpRecord& /*record*/) {}
  // What an error looks like that is found before anything is asked, in JSON.
  virtual std::string error_body(unsigned status, const std::string& message) const = 0;
};

class HttpServer {
 public:
  struct Limits {
    uint32_t header_bytes = 16u << 10;
    uint64_t body_bytes = 1u << 20;
    // All bodies together, each until its request is answered. Where there are more, whoever has sent his for
    // longest is sent away; where it is the answers that take so long, who is last is told to come again.
    uint64_t all_bodies_bytes = 8u << 20;
    uint64_t unread_bytes = 4u << 20;  // of an answer
    // Where there are more, whoever has let us wait longest is sent away; those that are being answered are
    // not. There are fewer where the process may not open so many descriptors.
    uint32_t connections = 512;
    std::chrono::milliseconds idle{60'000};  // between two requests
    std::chrono::milliseconds header{10'000};
    std::chrono::milliseconds body{60'000};
    std::chrono::milliseconds write{60'000};
    std::chrono::milliseconds ping{30'000};
  };

  // Binds at once; port 0: any. The handler outlives it. Errors: io_error, naming host and port; no_space,
  // where there are too few descriptors.
  static Result<std::unique_ptr<HttpServer>> listen(const std::string& host, uint16_t port, Limits limits,
                                                    HttpHandler& handler);
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;
  // Serves until `stop`; the thread that calls this is the server's.
  virtual void run() = 0;
  // [any thread] Runs it on the server's thread.
  virtual void post(std::function<void()> work) = 0;
  // [server's thread] No new connections, and no new requests on the old ones; `run` returns when the answers
  // that were begun are over, or after `grace`, the last one given.
  virtual void drain(std::chrono::milliseconds grace) = 0;
  // [any thread] `run` returns now.
  virtual void stop() = 0;
};

}  // namespace tierd
