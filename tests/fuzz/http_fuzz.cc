// What a client sends on a connection, through the server itself: it answers each of the requests, or says
// what is wrong and ends the connection.
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "core/base/check.h"
#include "tests/fuzz/target.h"
#include "tests/tierd/http_client.h"
#include "tools/tierd/http/http_server.h"

namespace tierd {
namespace {

class Echo {
 public:
  Echo() {
    using namespace std::chrono_literals;
    HttpServer::Limits limits{.header_bytes = 2048, .body_bytes = 4096};
    // Whoever stops in the middle has ended: the client shuts down its side.
    auto listening = HttpServer::listen(
        "127.0.0.1", 0, limits,
        [](HttpRequest request, std::shared_ptr<HttpReply> reply) {
          TIERD_CHECK(request.body.size() <= 4096 && !request.id.empty());
          if (request.path == "/stream") {
            reply->begin(200, "text/event-stream", "");
            reply->write(request.body);
            return reply->end();
          }
          reply->send(200, "text/plain", request.method + request.path + request.body);
        },
        [](unsigned, const std::string& message) { return message; });
    TIERD_CHECK(listening.ok());
    server_ = std::move(*listening);
    std::thread([server = server_.get()] { server->run(); }).detach();
  }
  uint16_t port() const { return server_->port(); }

 private:
  std::unique_ptr<HttpServer> server_;
};

}  // namespace

void fuzz(std::string_view input) {
  static const Echo* const echo = new Echo;
  HttpClient client(echo->port());
  TIERD_CHECK(client.connected());
  client.send(input);
  client.shut();
  const std::string answers = client.read_to_end();
  TIERD_CHECK(answers.empty() || answers.starts_with("HTTP/1."));
}

}  // namespace tierd
