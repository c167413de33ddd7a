// The answer of one connection: what the handler says of it, and how that is written to the client.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tools/tierd/server/http/http_server.h"

namespace tierd {

// What the connection writes, and the handler has said.
class HttpExchange final : public HttpReply {
 public:
  HttpExchange(boost::asio::io_context& io, uint64_t most_unread);

  void send(unsigned status, std::string_view content_type, std::string body, HttpHeaders headers) override;
  void begin(unsigned status, std::string_view content_type, std::string ping) override;
  void write(std::string data) override;
  void end() override;
  void on_gone(std::function<void()> gone) override;

  // The client has left.
  void leave();

  bool begun() const { return begun_; }
  bool streams() const { return streams_; }
  bool over() const { return over_; }
  bool left() const { return left_; }
  const std::string& ping() const { return ping_; }
  boost::beast::http::response<boost::beast::http::empty_body>& head() { return head_; }
  bool has_parts() const { return !parts_.empty(); }
  std::string take_part();

  // Waits for something new to write, or for the end of the wait.
  boost::asio::awaitable<bool> news(std::chrono::milliseconds most);

 private:
  void tell();

  boost::asio::steady_timer news_;
  uint64_t most_unread_;
  boost::beast::http::response<boost::beast::http::empty_body> head_;
  std::deque<std::string> parts_;
  uint64_t unread_ = 0;
  std::string ping_;
  std::function<void()> gone_;
  bool told_ = false;
  bool begun_ = false;
  bool streams_ = false;
  bool over_ = false;
  bool left_ = false;
};

// The handler's hold on an exchange: what is let go of without an end is over, on whatever thread that
// happens.
class HeldHttpReply final : public HttpReply {
 public:
  HeldHttpReply(boost::asio::io_context& io, std::shared_ptr<HttpExchange> exchange)
      : io_(io), exchange_(std::move(exchange)) {}
  ~HeldHttpReply() override;
  void send(unsigned status, std::string_view content_type, std::string body, HttpHeaders headers) override {
    exchange_->send(status, content_type, std::move(body), std::move(headers));
  }
  void begin(unsigned status, std::string_view content_type, std::string ping) override {
    exchange_->begin(status, content_type, std::move(ping));
  }
  void write(std::string data) override { exchange_->write(std::move(data)); }
  void end() override { exchange_->end(); }
  void on_gone(std::function<void()> gone) override { exchange_->on_gone(std::move(gone)); }

 private:
  boost::asio::io_context& io_;
  std::shared_ptr<HttpExchange> exchange_;
};

// Writes until the answer is out. False where the connection is of no more use.
boost::asio::awaitable<bool> write_answer(boost::beast::tcp_stream& stream, HttpExchange& exchange,
                                          const HttpServer::Limits& limits, bool without_body);

}  // namespace tierd
