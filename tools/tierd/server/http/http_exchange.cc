// Queues the handler's parts in an exchange, and sends them to the client as HTTP.
#include "tools/tierd/server/http/http_exchange.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http.hpp>
#include <string_view>
#include <utility>

namespace tierd {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using namespace asio::experimental::awaitable_operators;

// Interval of looks at a client whose socket reports no more events: it has sent bytes of its next request,
// or ended its side.
constexpr std::chrono::milliseconds kLook{1000};
// Time in which a reset from a client that is gone arrives, on most networks.
constexpr std::chrono::milliseconds kEcho{50};
// Sent to find out whether a client is gone. A client that listens ignores it.
constexpr std::string_view kProbe = "HTTP/1.1 102 Processing\r\n\r\n";

// Waits until the socket has bytes to read, or its end.
asio::awaitable<void> readable(beast::tcp_stream& stream) {
  error_code error;
  co_await stream.socket().async_wait(tcp::socket::wait_read,
                                      asio::redirect_error(asio::use_awaitable, error));
}

// The state of the client's side of the connection. A client that has ended its side (its FIN may follow
// unread bytes) may still listen or be gone; a gone one answers the next bytes with a reset.
enum class Client : uint8_t { sends, listens_or_gone, gone };
Client client_of(beast::tcp_stream& stream) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(stream.socket().native_handle(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0)
    return Client::gone;
  if (info.tcpi_state == TCP_ESTABLISHED) return Client::sends;
  return info.tcpi_state == TCP_CLOSE_WAIT ? Client::listens_or_gone : Client::gone;
}

}  // namespace

HttpExchange::HttpExchange(asio::io_context& io, uint64_t most_unread)
    : news_(io), most_unread_(most_unread) {
  news_.expires_at(asio::steady_timer::time_point::max());
}

void HttpExchange::send(unsigned status, std::string_view content_type, std::string body,
                        HttpHeaders headers) {
  if (begun_ || over_) return;
  head_.result(status);
  for (const auto& [name, value] : headers) head_.set(name, value);
  head_.set(http::field::content_type, boost::beast::string_view(content_type.data(), content_type.size()));
  head_.content_length(body.size());
  begun_ = over_ = true;
  if (!body.empty()) parts_.push_back(std::move(body));
  tell();
}

void HttpExchange::begin(unsigned status, std::string_view content_type, std::string ping) {
  if (begun_ || over_) return;
  head_.result(status);
  head_.set(http::field::content_type, boost::beast::string_view(content_type.data(), content_type.size()));
  head_.set(http::field::cache_control, "no-cache");
  ping_ = std::move(ping);
  begun_ = streams_ = true;
  tell();
}

void HttpExchange::write(std::string data) {
  if (over_ || !streams_ || data.empty()) return;
  const bool unread_before = unread_ != 0;
  unread_ += data.size();
  parts_.push_back(std::move(data));
  // A single part may exceed the limit, since the client has not caused it.
  if (unread_before && unread_ > most_unread_) return leave();
  tell();
}

void HttpExchange::end() {
  over_ = true;
  tell();
}

void HttpExchange::on_gone(std::function<void()> gone) {
  if (left_) {
    gone();
  } else {
    gone_ = std::move(gone);
  }
}

void HttpExchange::leave() {
  if (left_) return;
  left_ = true;
  const bool early = !over_;
  over_ = true;
  parts_.clear();
  const std::function<void()> gone = std::move(gone_);
  gone_ = nullptr;
  if (early && gone) gone();
  tell();
}

std::string HttpExchange::take_part() {
  std::string part;
  part.swap(parts_.front());
  parts_.pop_front();
  unread_ -= std::min<uint64_t>(unread_, part.size());
  return part;
}

asio::awaitable<bool> HttpExchange::news(std::chrono::milliseconds most) {
  if (told_) {
    told_ = false;
    co_return true;
  }
  news_.expires_after(most);
  error_code ended;
  co_await news_.async_wait(asio::redirect_error(asio::use_awaitable, ended));
  const bool told = told_;
  told_ = false;
  co_return told;
}

void HttpExchange::tell() {
  told_ = true;
  news_.cancel();
}

HeldHttpReply::~HeldHttpReply() {
  asio::post(io_, [exchange = std::move(exchange_)] {
    if (!exchange->over()) exchange->leave();
  });
}

asio::awaitable<bool> write_answer(beast::tcp_stream& stream, HttpExchange& exchange,
                                   const HttpServer::Limits& limits, bool without_body) {
  error_code error;
  bool unread = false;  // the client has sent bytes or its end: the socket stays readable
  bool probed = false;  // kProbe or a ping was sent to a client that has ended its side
  std::chrono::milliseconds look = kLook;
  auto said = std::chrono::steady_clock::now();
  bool head_sent = false;
  bool chunked = false;
  while (!exchange.left()) {
    if (exchange.begun() && !head_sent) {
      if (exchange.streams()) {
        chunked = exchange.head().version() >= 11;
        if (chunked) {
          exchange.head().chunked(true);
        } else {
          exchange.head().keep_alive(false);
        }
      }
      http::response_serializer<http::empty_body> serializer(exchange.head());
      stream.expires_after(limits.write);
      co_await http::async_write_header(stream, serializer, asio::redirect_error(asio::use_awaitable, error));
      head_sent = true;
    } else if (head_sent && exchange.has_parts()) {
      const std::string part = exchange.take_part();
      said = std::chrono::steady_clock::now();
      stream.expires_after(limits.write);
      if (without_body) continue;
      if (chunked) {
        co_await asio::async_write(stream, http::make_chunk(asio::buffer(part)),
                                   asio::redirect_error(asio::use_awaitable, error));
      } else {
        co_await asio::async_write(stream, asio::buffer(part),
                                   asio::redirect_error(asio::use_awaitable, error));
      }
    } else if (exchange.over()) {
      if (!head_sent) co_return false;
      if (chunked && !without_body) {
        stream.expires_after(limits.write);
        co_await asio::async_write(stream, http::make_chunk_last(),
                                   asio::redirect_error(asio::use_awaitable, error));
      }
      stream.expires_never();
      co_return !error && (chunked || !exchange.streams());
    } else {
      stream.expires_never();
      const std::chrono::milliseconds most =
          unread ? std::min(std::exchange(look, kLook), limits.ping) : limits.ping;
      bool told = false;
      if (unread) {
        told = co_await exchange.news(most);
      } else {
        const auto first = co_await (exchange.news(most) || readable(stream));
        unread = first.index() == 1;
        if (!unread) told = std::get<0>(first);
      }
      if (told) continue;
      const Client client = client_of(stream);
      if (client == Client::listens_or_gone && !probed) {
        probed = true;
        look = kEcho;
        if (!head_sent && exchange.head().version() >= 11) {
          stream.expires_after(limits.write);
          co_await asio::async_write(stream, asio::buffer(kProbe),
                                     asio::redirect_error(asio::use_awaitable, error));
          if (!error) continue;
        } else if (head_sent && !exchange.ping().empty()) {
          exchange.write(exchange.ping());
          continue;
        }
        exchange.leave();  // no bytes may be sent now that would show whether it listens
        co_return false;
      }
      if (client == Client::gone) {
        exchange.leave();
        co_return false;
      }
      const auto now = std::chrono::steady_clock::now();
      if (now - said < limits.ping) continue;
      said = now;
      if (head_sent && !exchange.ping().empty()) exchange.write(exchange.ping());
    }
    if (error) {
      exchange.leave();
      co_return false;
    }
  }
  co_return false;
}

}  // namespace tierd
