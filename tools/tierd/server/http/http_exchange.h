// The answer of one connection: the handler fills it, and write_answer sends it to the client.
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

// An answer between its handler, which calls HttpReply, and its connection, which sends the parts.
class HttpExchange final : public HttpReply {
 public:
  HttpExchange(boost::asio::io_context& io, uint64_t most_unread);

  void send(unsigned status, std::string_view content_type, std::string body, HttpHeaders headers) override;
  void begin(unsigned status, std::string_view content_type, std::string ping) override;
  void write(std::string data) override;
  void end() override;
  void on_gone(std::function<void()> gone) override;

  // Marks the client as gone, and calls on_gone's function.
  void leave();

  bool begun() const { return begun_; }
  bool streams() const { return streams_; }
  bool over() const { return over_; }
  bool left() const { return left_; }
  const std::string& ping() const { return ping_; }
  boost::beast::http::response<boost::beast::http::empty_body>& head() { return head_; }
  bool has_parts() const { return !parts_.empty(); }
  std::string take_part();

  // Waits until there is something to write. Returns false after `most`.
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

// The handler's reference to an exchange. Its destruction, on any thread, closes an answer without an end.
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

// Sends the answer to its end. Returns false where the connection cannot be used again.
boost::asio::awaitable<bool> write_answer(boost::beast::tcp_stream& stream, HttpExchange& exchange,
                                          const HttpServer::Limits& limits, bool without_body);

}  // namespace tierd
