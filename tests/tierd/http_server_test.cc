#include "tools/tierd/server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <map>
#include <thread>

#include "tests/tierd/http_client.h"

namespace tierd {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// A handler that echoes bodies; some paths have other behaviour.
class HttpServerTest : public testing::Test, public HttpHandler {
 protected:
  void start(HttpServer::Limits limits = {}) {
    auto listening = HttpServer::listen("127.0.0.1", 0, limits, *this);
    ASSERT_TRUE(listening.ok()) << listening.error().line();
    server_ = std::move(*listening);
    thread_ = std::thread([this] { server_->run(); });
  }
  void TearDown() override {
    if (!server_) return;
    server_->stop();
    if (thread_.joinable()) thread_.join();
    held_.reset();
  }
  uint16_t port() const { return server_->port(); }
  // Runs `work` on the server's thread, and waits for it.
  void on_server(const std::function<void()>& work) {
    std::atomic<bool> done = false;
    server_->post([&] {
      work();
      done = true;
    });
    while (!done) std::this_thread::sleep_for(1ms);
  }
  bool admit(const HttpRequest& head, HttpReply& reply) override {
    if (head.path != "/no") return true;
    reply.send(403, "text/plain", "not you");
    return false;
  }
  std::string error_body(unsigned status, const std::string& message) const override {
    return std::to_string(status) + " " + message;
  }
  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) override {
    host_ = request.host;
    if (request.path == "/drop") return;
    if (request.path == "/hold" || request.path == "/stream") {
      held_ = reply;
      held_->on_gone([this] { ++gone_; });
      if (request.path == "/stream") {
        held_->begin(200, "text/event-stream", ": ping\n\n");
        held_->write("first\n");
      }
      ++holding_;
      return;
    }
    reply->send(200, "text/plain",
                request.method + " " + request.path + " " + request.body + "|" + request.authorization,
                {{"X-Seen", request.id}});
  }
  void wait_for(const std::atomic<int>& count, int value) {
    for (int i = 0; i < 10'000 && count < value; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_GE(count, value);
  }

  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  std::shared_ptr<HttpReply> held_;
  std::string host_;  // read after the answer
  std::atomic<int> holding_ = 0;
  std::atomic<int> gone_ = 0;
};

TEST_F(HttpServerTest, AnswersOneRequestAfterTheOtherOnAConnection) {
  start();
  HttpClient client(port());
  client.post("/a?b=c", "hello", "Authorization: Bearer k\r\nX-Request-Id: my-id.7\r\n");
  const HttpAnswer first = client.read();
  EXPECT_EQ(first.status, 200u);
  EXPECT_EQ(first.body, "POST /a hello|Bearer k");
  EXPECT_EQ(first.headers.at("x-seen"), "my-id.7");
  EXPECT_EQ(first.headers.at("x-request-id"), "my-id.7");
  client.get("/b", "X-Request-Id: bad id\r\n");
  client.get("/c");  // pipelined
  const HttpAnswer second = client.read();
  EXPECT_EQ(second.body, "GET /b |");
  EXPECT_EQ(second.headers.at("x-seen").size(), 16u);
  EXPECT_EQ(client.read().body, "GET /c |");
  client.get("/d", "Connection: close\r\n");
  EXPECT_EQ(client.read().body, "GET /d |");
  EXPECT_EQ(client.read().status, 0u);
}

TEST_F(HttpServerTest, AHeadHasNoBody) {
  start();
  HttpClient client(port());
  client.send("HEAD /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string all = client.read_to_end();
  EXPECT_THAT(all, HasSubstr("Content-Length: 9"));
  EXPECT_THAT(all, testing::EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, StreamsInChunksAndToOldClientsUntilTheEnd) {
  start();
  HttpClient client(port());
  client.get("/stream");
  EXPECT_THAT(client.read_to("first\n"), HasSubstr("Transfer-Encoding: chunked"));
  on_server([&] {
    held_->write("second\n");
    held_->end();
  });
  EXPECT_THAT(client.read_to("0\r\n\r\n"), HasSubstr("second\n"));
  client.get("/again");  // the connection can be used again
  EXPECT_EQ(client.read().body, "GET /again |");

  HttpClient old(port());
  old.send("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old.read_to("first\n"), testing::Not(HasSubstr("chunked")));
  on_server([&] { held_->end(); });
  EXPECT_EQ(old.read_to_end(), "");
  EXPECT_EQ(gone_, 0);
}

TEST_F(HttpServerTest, PingsWhenThereIsNothingToSay) {
  start({.ping = 20ms});
  HttpClient client(port());
  client.get("/stream");
  EXPECT_FALSE(client.read_to(": ping\n\n").empty());
  EXPECT_FALSE(client.read_to(": ping\n\n").empty());
}

TEST_F(HttpServerTest, AClientThatLeavesIsNoticedBeforeAndWithinAnAnswer) {
  start();
  for (const char* path : {"/hold", "/stream"}) {
    const int before = gone_;
    HttpClient client(port());
    client.get(path);
    wait_for(holding_, before + 1);
    client.leave();
    wait_for(gone_, before + 1);
  }
  on_server([&] { held_->write("to nobody"), held_->end(); });
}

TEST_F(HttpServerTest, AClientThatDoesNotReadIsGivenUp) {
  start({.unread_bytes = 1u << 20});
  HttpClient client(port());
  client.get("/stream");
  wait_for(holding_, 1);
  for (int i = 0; i < 200 && gone_ == 0; ++i) on_server([&] { held_->write(std::string(1u << 18, 'x')); });
  EXPECT_EQ(gone_, 1);
}

TEST_F(HttpServerTest, AReplyThatIsLetGoOfClosesTheConnection) {
  start();
  HttpClient client(port());
  client.get("/drop");
  EXPECT_EQ(client.read().status, 0u);
}

TEST_F(HttpServerTest, RefusesWhatIsNoHttpOrTooLarge) {
  start({.header_bytes = 1024, .body_bytes = 1000});
  const auto answer_to = [&](const std::string& text) {
    HttpClient client(port());
    client.send(text);
    return client.read();
  };
  EXPECT_EQ(answer_to("nonsense\r\n\r\n").status, 400u);
  EXPECT_EQ(answer_to("GET / HTTP/9.9\r\n\r\n").status, 400u);
  EXPECT_EQ(answer_to(std::string("G\0T / HTTP/1.1\r\n\r\n", 18)).status, 400u);
  EXPECT_EQ(answer_to("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n").status, 400u);
  EXPECT_EQ(answer_to("POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello").status, 400u);
  const HttpAnswer long_header = answer_to("GET / HTTP/1.1\r\nX: " + std::string(5000, 'x') + "\r\n\r\n");
  EXPECT_EQ(long_header.status, 431u);
  EXPECT_THAT(long_header.body, HasSubstr("longer than 1024 bytes"));
  const HttpAnswer long_body = answer_to("POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n");
  EXPECT_EQ(long_body.status, 413u);
  EXPECT_THAT(long_body.body, HasSubstr("longer than 1000 bytes"));
  EXPECT_EQ(answer_to("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + std::string(2000, 'x'))
                .status,
            413u);
  EXPECT_EQ(answer_to("GET /fine HTTP/1.1\r\nHost: x\r\n\r\n").status, 200u);
}

TEST_F(HttpServerTest, AskedForItSendsContinue) {
  start();
  HttpClient client(port());
  client.send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.read_to("\r\n\r\n"), HasSubstr("100 Continue"));
  client.send("ab");
  EXPECT_EQ(client.read().body, "POST /x ab|");
}

TEST_F(HttpServerTest, SlowClientsAreSentAway) {
  start({.idle = 100ms, .header = 100ms, .body = 100ms});
  HttpClient silent(port()), halting(port()), bodiless(port());
  halting.send("GET / HT");
  bodiless.send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(silent.read().status, 0u);
  EXPECT_EQ(halting.read().status, 0u);
  EXPECT_EQ(bodiless.read().status, 0u);
}

TEST_F(HttpServerTest, WhoIsNotAdmittedNeedsToSendNoBody) {
  start();
  HttpClient client(port());
  client.get("/no");
  EXPECT_EQ(client.read().status, 403u);
  client.send("POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n");
  const HttpAnswer refused = client.read();
  EXPECT_EQ(refused.status, 403u);
  EXPECT_EQ(refused.body, "not you");
  EXPECT_EQ(refused.headers.at("connection"), "close");
  client.leave();

  HttpClient eager(port());
  eager.send("POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x'));
  EXPECT_EQ(eager.read().status, 403u);
  EXPECT_EQ(eager.read().status, 0u);
}

TEST_F(HttpServerTest, AClientThatLeavesIsNoticedBehindBytesItSentTooMuch) {
  start();
  HttpClient client(port());
  client.send("POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nabc");
  wait_for(holding_, 1);
  client.leave();
  wait_for(gone_, 1);
}

TEST_F(HttpServerTest, SilentClientsDoNotShutOthersOut) {
  start({.connections = 2});
  HttpClient silent(port()), halting(port());
  halting.send("GET / HT");
  for (int i = 0; i < 20; ++i) {
    HttpClient client(port());
    client.get("/a");
    EXPECT_EQ(client.read().status, 200u);
  }
  EXPECT_EQ(silent.read().status, 0u);
}

TEST_F(HttpServerTest, WhoIsAnsweredKeepsHisConnectionAndOthersWait) {
  start({.connections = 2});
  HttpClient a(port()), b(port());
  a.get("/stream"), wait_for(holding_, 1);
  const std::shared_ptr<HttpReply> first = held_;
  b.get("/stream"), wait_for(holding_, 2);
  HttpClient c(port());
  c.get("/c");
  on_server([&] { first->write("more\n"), first->end(); });
  EXPECT_FALSE(a.read_to("more\n").empty());
  EXPECT_EQ(c.read().body, "GET /c |");
}

// The connection that has been sending its body for longest is closed, but none that is being answered.
TEST_F(HttpServerTest, BodiesAreBoundedTogether) {
  HttpServer::Limits limits;
  limits.body_bytes = 1u << 20;
  limits.all_bodies_bytes = 2u << 20;
  start(limits);
  const std::string most(900'000, 'x');
  const auto begin = [&](HttpClient& client, const std::string& path) {
    client.send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 900001\r\n\r\n" + most);
  };
  HttpClient first(port()), second(port()), third(port());
  begin(first, "/hold");
  first.send("x");
  wait_for(holding_, 1);
  begin(second, "/slow");
  begin(third, "/third");
  EXPECT_NE(second.read().status, 200u);  // refused, or closed
  third.send("x");
  EXPECT_EQ(third.read().status, 200u);

  HttpClient fourth(port()), fifth(port());
  const std::shared_ptr<HttpReply> of_first = held_;
  begin(fourth, "/hold");
  fourth.send("x");
  wait_for(holding_, 2);
  begin(fifth, "/fifth");
  const HttpAnswer refused = fifth.read();
  EXPECT_EQ(refused.status, 503u);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  on_server([&] { of_first->send(200, "text/plain", "done"); });
  EXPECT_EQ(first.read().status, 200u);
  HttpClient sixth(port());
  begin(sixth, "/sixth");
  sixth.send("x");
  EXPECT_EQ(sixth.read().status, 200u);
}

TEST_F(HttpServerTest, AClientThatHasSaidAllIsStillAnswered) {
  start();
  HttpClient client(port());
  client.post("/a", "hello");
  client.shut();
  EXPECT_THAT(client.read_to_end(), HasSubstr("POST /a hello"));

  HttpClient patient(port());
  patient.post("/hold", "hello");
  patient.shut();
  wait_for(holding_, 1);
  std::this_thread::sleep_for(100ms);
  on_server([&] { held_->send(200, "text/plain", "late"); });
  EXPECT_THAT(patient.read_to_end(), testing::EndsWith("late"));

  HttpClient listener(port());
  listener.get("/stream");
  listener.shut();
  wait_for(holding_, 2);
  std::this_thread::sleep_for(100ms);
  on_server([&] {
    held_->write("second\n");
    held_->end();
  });
  EXPECT_THAT(listener.read_to_end(), HasSubstr("second\n"));
  EXPECT_EQ(gone_, 0);
}

TEST_F(HttpServerTest, ATransferCodingThatIsNotKnownIsNoSecondRequest) {
  start();
  for (const char* coding : {"xchunked", "gzip, chunked", "chunked, chunked", "identity"}) {
    HttpClient client(port());
    client.send(std::string("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ") + coding +
                "\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string all = client.read_to_end();
    EXPECT_THAT(all, testing::StartsWith("HTTP/1.1 501")) << coding;
    EXPECT_THAT(all, testing::Not(HasSubstr("smuggled"))) << coding;
  }
  HttpClient client(port());
  client.send("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
  EXPECT_EQ(client.read().body, "POST /a hi|");
}

TEST_F(HttpServerTest, ATargetMayHaveItsHostInIt) {
  start();
  HttpClient client(port());
  for (const auto& [target, path] : std::map<std::string, std::string>{{"http://localhost:80/a?b", "/a"},
                                                                       {"HTTP://localhost/c/d", "/c/d"},
                                                                       {"https://localhost", "/"},
                                                                       {"http://localhost?x", "/"},
                                                                       {"http:/a", "http:/a"}}) {
    client.send("GET " + target + " HTTP/1.1\r\nHost: elsewhere\r\n\r\n");
    EXPECT_EQ(client.read().body, "GET " + path + " |") << target;
    EXPECT_EQ(host_, target.starts_with("http:/a") ? "elsewhere"
                     : target.ends_with(":80/a?b") ? "localhost:80"
                                                   : "localhost");
  }
}

// The process keeps some descriptors for itself, and idle connections do not keep others out.
TEST_F(HttpServerTest, DescriptorsAreLeftForTheRestOfTheProcess) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto open = static_cast<rlim_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                                      std::filesystem::directory_iterator()));
  rlimit few = before;
  few.rlim_cur = open + 20;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto refused = HttpServer::listen("127.0.0.1", 0, {}, *this);
  few.rlim_cur = open + 64 + 10;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  start();
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(std::make_unique<HttpClient>(port()));
  HttpClient client(port());
  client.get("/a");
  EXPECT_EQ(client.read().status, 200u);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().line(), HasSubstr("ulimit -n"));
}

TEST_F(HttpServerTest, DrainingFinishesWhatWasBegunAndTakesNothingNew) {
  start();
  HttpClient idle(port()), busy(port());
  idle.get("/a");
  EXPECT_EQ(idle.read().status, 200u);
  busy.get("/stream");
  wait_for(holding_, 1);
  on_server([&] { server_->drain(10s); });
  EXPECT_EQ(idle.read().status, 0u);
  EXPECT_FALSE(HttpClient(port()).connected());
  on_server([&] { held_->write("last\n"), held_->end(); });
  EXPECT_FALSE(busy.read_to("last\n").empty());
  thread_.join();
}

TEST_F(HttpServerTest, DrainingHasAnEnd) {
  start();
  HttpClient busy(port());
  busy.get("/stream");
  wait_for(holding_, 1);
  on_server([&] { server_->drain(50ms); });
  thread_.join();
  EXPECT_EQ(gone_, 1);
}

TEST_F(HttpServerTest, APortThatIsTakenIsAnErrorThatNamesIt) {
  start();
  const auto second = HttpServer::listen("127.0.0.1", port(), {}, *this);
  EXPECT_EQ(second.code(), Code::io_error);
  EXPECT_THAT(second.error().line(), HasSubstr("127.0.0.1:" + std::to_string(port()) + ": cannot listen"));
  EXPECT_FALSE(HttpServer::listen("no.such.host.invalid", 0, {}, *this).ok());
}

}  // namespace
}  // namespace tierd
