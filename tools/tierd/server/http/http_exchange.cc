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

namespace {

class AnswerWriter {
 public:
  AnswerWriter(beast::tcp_stream& stream, HttpExchange& exchange, const HttpServer::Limits& limits,
               bool without_body)
      : stream_(stream), exchange_(exchange), limits_(limits), without_body_(without_body) {}

  asio::awaitable<bool> run() {
    while (!exchange_.left()) {
      if (exchange_.begun() && !head_sent_) {
        co_await send_head();
      } else if (head_sent_ && exchange_.has_parts()) {
        co_await send_part();
      } else if (exchange_.over()) {
        if (!head_sent_) co_return false;
        if (chunked_ && !without_body_) co_await send(http::make_chunk_last());
        stream_.expires_never();
        co_return !error_ && (chunked_ || !exchange_.streams());
      } else {
        const bool there = co_await wait();  // g++ 12 miscompiles a condition that waits
        if (!there) break;
      }
      if (error_) break;
    }
    exchange_.leave();
    co_return false;
  }

 private:
  asio::awaitable<void> send(const auto& buffers) {
    stream_.expires_after(limits_.write);
    co_await asio::async_write(stream_, buffers, asio::redirect_error(asio::use_awaitable, error_));
  }

  asio::awaitable<void> send_head() {
    if (exchange_.streams()) {
      chunked_ = exchange_.head().version() >= 11;
      if (chunked_) {
        exchange_.head().chunked(true);
      } else {
        exchange_.head().keep_alive(false);
      }
    }
    http::response_serializer<http::empty_body> serializer(exchange_.head());
    stream_.expires_after(limits_.write);
    co_await http::async_write_header(stream_, serializer, asio::redirect_error(asio::use_awaitable, error_));
    head_sent_ = true;
  }

  asio::awaitable<void> send_part() {
    const std::string part = exchange_.take_part();
    said_ = std::chrono::steady_clock::now();
    stream_.expires_after(limits_.write);
    if (without_body_) co_return;
    if (chunked_) {
      co_await send(http::make_chunk(asio::buffer(part)));
    } else {
      co_await send(asio::buffer(part));
    }
  }

  // Waits for more to send, and looks after the client meanwhile. Returns false if the client is gone.
  asio::awaitable<bool> wait() {
    stream_.expires_never();
    const std::chrono::milliseconds most =
        unread_ ? std::min(std::exchange(look_, kLook), limits_.ping) : limits_.ping;
    bool told = false;
    if (unread_) {
      told = co_await exchange_.news(most);
    } else {
      const auto first = co_await (exchange_.news(most) || readable(stream_));
      unread_ = first.index() == 1;
      if (!unread_) told = std::get<0>(first);
    }
    if (told) co_return true;
    const Client client = client_of(stream_);
    if (client == Client::listens_or_gone && !probed_) {
      const bool there = co_await probe();
      co_return there;
    }
    if (client == Client::gone) co_return false;
    const auto now = std::chrono::steady_clock::now();
    if (now - said_ < limits_.ping) co_return true;
    said_ = now;
    if (head_sent_ && !exchange_.ping().empty()) exchange_.write(exchange_.ping());
    co_return true;
  }

  // Sends bytes that a client which is gone answers with a reset. Returns false where no bytes may be sent
  // now that would show whether it listens.
  asio::awaitable<bool> probe() {
    probed_ = true;
    look_ = kEcho;
    if (!head_sent_ && exchange_.head().version() >= 11) {
      co_await send(asio::buffer(kProbe));
      co_return !error_;
    }
    const bool pings = head_sent_ && !exchange_.ping().empty();
    if (pings) exchange_.write(exchange_.ping());
    co_return pings;
  }

  beast::tcp_stream& stream_;
  HttpExchange& exchange_;
  const HttpServer::Limits& limits_;
  const bool without_body_;
  error_code error_;
  bool unread_ = false;  // the client has sent bytes or its end: the socket stays readable
  bool probed_ = false;  // kProbe or a ping was sent to a client that has ended its side
  std::chrono::milliseconds look_ = kLook;
  std::chrono::steady_clock::time_point said_ = std::chrono::steady_clock::now();
  bool head_sent_ = false;
  bool chunked_ = false;
};

}  // namespace

asio::awaitable<bool> write_answer(beast::tcp_stream& stream, HttpExchange& exchange,
                                   const HttpServer::Limits& limits, bool without_body) {
  AnswerWriter writer(stream, exchange, limits, without_body);
  const bool went_well = co_await writer.run();
  co_return went_well;
}

}  // namespace tierd
