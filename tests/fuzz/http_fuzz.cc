// The bytes of a client's connection, sent through the server itself. The server answers each request, or
// reports an error and closes the connection.
#include <sys/socket.h>

#include <cstring>
#include <thread>

#include "core/base/check.h"
#include "tests/fuzz/target.h"
#include "tests/tierd/http_client.h"
#include "tools/tierd/server/http/http_server.h"

namespace tierd {
namespace {

class Echo final : public HttpHandler {
 public:
  Echo() {
    // The client shuts down its side, so an incomplete request ends.
    auto listening = HttpServer::listen("127.0.0.1", 0, {.header_bytes = 2048, .body_bytes = 4096}, *this);
    TIERD_CHECK(listening.ok());
    server_ = std::move(*listening);
    std::thread([server = server_.get()] { server->run(); }).detach();
  }
  uint16_t port() const { return server_->port(); }

  bool admit(const HttpRequest& head, HttpReply& reply) override {
    TIERD_CHECK(head.body.empty() && !head.id.empty());
    if (head.path != "/no") return true;
    reply.send(403, "text/plain", "no");
    return false;
  }
  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) override {
    TIERD_CHECK(request.body.size() <= 4096);
    if (request.path == "/stream") {
      reply->begin(200, "text/event-stream", "");
      reply->write(request.body);
      return reply->end();
    }
    reply->send(200, "text/plain", request.method + request.path + request.body);
  }
  std::string error_body(unsigned, const std::string& message) const override { return message; }

 private:
  std::unique_ptr<HttpServer> server_;
};

}  // namespace

void fuzz(std::string_view input) {
  static Echo* const echo = new Echo;
  HttpClient client(echo->port());
  TIERD_CHECK_MSG(client.connected(), std::strerror(errno));
  client.send(input);
  client.shut();
  const std::string answers = client.read_to_end();
  TIERD_CHECK(answers.empty() || answers.starts_with("HTTP/1."));
}

}  // namespace tierd
