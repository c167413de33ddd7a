// HTTP/1.1 for a handful of clients that may be slow, broken or hostile: every wait has a time-out, every
// size a limit. The server knows nothing of models.
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
  std::string id;             // X-Request-Id of the client, where it is valid, else a new one
  std::string method;         // "POST"
  std::string path;           // of the target, before '?'
  std::string authorization;  // this header and the following; empty where absent
  std::string api_key;        // X-Api-Key
  std::string host;
  std::string origin;
  std::string content_type;
  std::string body;
  // Counts the body's bytes in Limits::all_bodies_bytes as long as a copy exists.
  std::shared_ptr<const void> room = {};
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The answer to one request: sent whole, or begun and written in parts. All calls on the server's thread. It
// may be destroyed on any thread, before the server.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  // Sends the whole answer with its length. No other call may follow.
  virtual void send(unsigned status, std::string_view content_type, std::string body,
                    HttpHeaders headers = {}) = 0;
  // Begins a stream. `ping` is written after a while without parts. Empty: no ping.
  virtual void begin(unsigned status, std::string_view content_type, std::string ping) = 0;
  virtual void write(std::string data) = 0;
  virtual void end() = 0;
  // Sets the function that is called once if the client leaves before the end, or if too many bytes wait for
  // a client that reads slowly.
  virtual void on_gone(std::function<void()> gone) = 0;
};

// A request that has ended, for logs.
struct HttpRecord {
  std::string id;
  std::string method;  // empty, as is the path, where the bytes were no HTTP
  std::string path;
  unsigned status = 0;  // 0: there was no answer
  bool heard = false;   // the client has received the whole answer
  std::chrono::nanoseconds took{0};
};

// Answers requests. All calls on the server's thread.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Returns whether the server should read the request's body. If it returns false, it has sent the reply.
  virtual bool admit(const HttpRequest& /*head*/, HttpReply& /*reply*/) { return true; }
  // Answers the request. It keeps the reply as long as it writes. A reply that is destroyed unanswered closes
  // the connection.
  virtual void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) = 0;
  // Returns headers that every answer to such a request has.
  virtual HttpHeaders headers(const HttpRequest& /*head*/) const { return {}; }
  virtual void answered(const HttpRecord& /*record*/) {}
  // Returns the JSON body of an error that the server finds before it calls handle().
  virtual std::string error_body(unsigned status, const std::string& message) const = 0;
};

class HttpServer {
 public:
  struct Limits {
    uint32_t header_bytes = 16u << 10;
    uint64_t body_bytes = 1u << 20;
    // All bodies together, each until its request is answered. Beyond the limit the connection that has been
    // sending for longest is closed; where answers hold the bytes, the newest request is refused.
    uint64_t all_bodies_bytes = 8u << 20;
    uint64_t unread_bytes = 4u << 20;  // of an answer
    // At the limit, the server closes the connection that has been awaited for longest, and none that is
    // being answered. The limit is lower where the process may open fewer descriptors.
    uint32_t connections = 512;
    std::chrono::milliseconds idle{60'000};  // between two requests
    std::chrono::milliseconds header{10'000};
    std::chrono::milliseconds body{60'000};
    std::chrono::milliseconds write{60'000};
    std::chrono::milliseconds ping{30'000};
  };

  // Binds and listens at once; port 0: any free port. The handler must outlive the server. Errors: io_error,
  // which names host and port; no_space for too few descriptors.
  static Result<std::unique_ptr<HttpServer>> listen(const std::string& host, uint16_t port, Limits limits,
                                                    HttpHandler& handler);
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;
  // Serves until `stop`. The calling thread becomes the server's thread.
  virtual void run() = 0;
  // [any thread] Runs `work` on the server's thread.
  virtual void post(std::function<void()> work) = 0;
  // [server's thread] Accepts no new connections, and no new requests on the open ones. `run` returns when
  // the answers that were begun are complete, or after `grace`. A later call replaces `grace`.
  virtual void drain(std::chrono::milliseconds grace) = 0;
  // [any thread] Makes `run` return at once.
  virtual void stop() = 0;
};

}  // namespace tierd
