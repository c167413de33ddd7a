#include "tools/tierd/http/http_server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <deque>
#include <random>
#include <set>

namespace tierd {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using namespace asio::experimental::awaitable_operators;

constexpr const char* kServer = "tierd";
constexpr size_t kLongestId = 128;

// For logs: no more than a client should be able to write into them.
bool is_sound_id(std::string_view id) {
  return !id.empty() && id.size() <= kLongestId && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
}

std::string text_of(boost::beast::string_view view) {
  return {view.data(), view.size()};
}

// What the connection writes, and the handler has said.
class Exchange final : public HttpReply {
 public:
  Exchange(asio::io_context& io, uint64_t most_unread) : news_(io), most_unread_(most_unread) {
    news_.expires_at(asio::steady_timer::time_point::max());
  }

  void send(unsigned status, std::string_view content_type, std::string body, HttpHeaders headers) override {
    if (begun_ || over_) return;
    head_.result(status);
    for (const auto& [name, value] : headers) head_.set(name, value);
    head_.set(http::field::content_type, boost::beast::string_view(content_type.data(), content_type.size()));
    head_.content_length(body.size());
    begun_ = over_ = true;
    if (!body.empty()) parts_.push_back(std::move(body));
    tell();
  }
  void begin(unsigned status, std::string_view content_type, std::string ping) override {
    if (begun_ || over_) return;
    head_.result(status);
    head_.set(http::field::content_type, boost::beast::string_view(content_type.data(), content_type.size()));
    head_.set(http::field::cache_control, "no-cache");
    ping_ = std::move(ping);
    begun_ = streams_ = true;
    tell();
  }
  void write(std::string data) override {
    if (over_ || !streams_ || data.empty()) return;
    const bool unread_before = unread_ != 0;
    unread_ += data.size();
    parts_.push_back(std::move(data));
    // A single part may be large: that is not the client's doing.
    if (unread_before && unread_ > most_unread_) return leave();
    tell();
  }
  void end() override {
    over_ = true;
    tell();
  }
  void on_gone(std::function<void()> gone) override {
    if (left_) {
      gone();
    } else {
      gone_ = std::move(gone);
    }
  }

  // The client has left.
  void leave() {
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

  bool begun() const { return begun_; }
  bool streams() const { return streams_; }
  bool over() const { return over_; }
  bool left() const { return left_; }
  const std::string& ping() const { return ping_; }
  http::response<http::empty_body>& head() { return head_; }
  bool has_parts() const { return !parts_.empty(); }
  std::string take_part() {
    std::string part;
    part.swap(parts_.front());
    parts_.pop_front();
    unread_ -= std::min<uint64_t>(unread_, part.size());
    return part;
  }

  // Waits for something new to write, or for the end of the wait.
  asio::awaitable<bool> news(std::chrono::milliseconds most) {
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

 private:
  void tell() {
    told_ = true;
    news_.cancel();
  }

  asio::steady_timer news_;
  uint64_t most_unread_;
  http::response<http::empty_body> head_;
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
class HeldReply final : public HttpReply {
 public:
  HeldReply(asio::io_context& io, std::shared_ptr<Exchange> exchange)
      : io_(io), exchange_(std::move(exchange)) {}
  ~HeldReply() override {
    asio::post(io_, [exchange = std::move(exchange_)] {
      if (!exchange->over()) exchange->leave();
    });
  }
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
  asio::io_context& io_;
  std::shared_ptr<Exchange> exchange_;
};

class Server final : public HttpServer {
 public:
  Server(Limits limits, Handler handler, ErrorBody error_body)
      : limits_(limits),
        handler_(std::move(handler)),
        error_body_(std::move(error_body)),
        acceptor_(io_),
        grace_(io_),
        random_(std::random_device()()) {}

  Status bind(const std::string& host, uint16_t port) {
    const auto failed = [&](const error_code& error) {
      return Error{Code::io_error, fmt::format("{}:{}", host, port),
                   fmt::format("cannot listen: {}; give another --host or --port", error.message())};
    };
    error_code error;
    tcp::resolver resolver(io_);
    const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
    if (error) return failed(error);
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) return failed(error);
    port_ = acceptor_.local_endpoint(error).port();
    return {};
  }

  uint16_t port() const override { return port_; }
  void run() override {
    asio::co_spawn(io_, accept(), asio::detached);
    io_.run();
    // Nobody hears the rest; what was left here in the meantime still happens, and what waits goes with the
    // sockets.
    for (const std::shared_ptr<Exchange>& exchange : std::set(exchanges_)) exchange->leave();
    io_.restart();
    io_.poll();
  }
  void post(std::function<void()> work) override { asio::post(io_, std::move(work)); }
  void drain(std::chrono::milliseconds grace) override {
    error_code ignored;
    if (!draining_) {
      acceptor_.close(ignored);
      for (beast::tcp_stream* stream : idle_)
        stream->socket().shutdown(tcp::socket::shutdown_receive, ignored);
    }
    draining_ = true;
    grace_.expires_after(grace);
    grace_.async_wait([this](const error_code& error) {
      if (!error) io_.stop();
    });
    end_if_drained();
  }
  void stop() override { io_.stop(); }

 private:
  void end_if_drained() {
    if (draining_ && connections_ == 0) io_.stop();
  }

  asio::awaitable<void> accept() {
    while (!draining_) {
      error_code error;
      tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) co_return;
      if (error) {  // such as too many open files: it may pass
        asio::steady_timer pause(io_, std::chrono::milliseconds(50));
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
        continue;
      }
      if (connections_ >= limits_.connections) continue;  // closed at once
      ++connections_;
      asio::co_spawn(io_, serve(std::move(socket)), [this](const std::exception_ptr&) {
        --connections_;
        end_if_drained();
      });
    }
  }

  asio::awaitable<void> serve(tcp::socket socket) {
    error_code error;
    socket.set_option(tcp::no_delay(true), error);
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer(limits_.header_bytes + limits_.body_bytes);
    while (!draining_ && co_await answer_next(stream, buffer)) {
    }
    stream.socket().shutdown(tcp::socket::shutdown_send, error);
  }

  // One request and its answer; whether another may follow.
  asio::awaitable<bool> answer_next(beast::tcp_stream& stream, beast::flat_buffer& buffer) {
    error_code error;
    if (buffer.size() == 0) {
      idle_.insert(&stream);
      stream.expires_after(limits_.idle);
      const size_t read =
          co_await stream.async_read_some(buffer.prepare(std::min<size_t>(4096, limits_.header_bytes)),
                                          asio::redirect_error(asio::use_awaitable, error));
      idle_.erase(&stream);
      if (error || draining_) co_return false;
      buffer.commit(read);
    }
    http::request_parser<http::string_body> parser;
    parser.header_limit(limits_.header_bytes);
    parser.body_limit(limits_.body_bytes);
    stream.expires_after(limits_.header);
    co_await http::async_read_header(stream, buffer, parser,
                                     asio::redirect_error(asio::use_awaitable, error));
    if (!error && boost::beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      const http::response<http::empty_body> go_on{http::status::continue_, parser.get().version()};
      co_await http::async_write(stream, go_on, asio::redirect_error(asio::use_awaitable, error));
    }
    if (!error) {
      stream.expires_after(limits_.body);
      co_await http::async_read(stream, buffer, parser, asio::redirect_error(asio::use_awaitable, error));
    }
    if (error) {
      co_await refuse(stream, error);
      co_return false;
    }
    stream.expires_never();
    http::request<http::string_body> message = parser.release();
    const auto exchange = std::make_shared<Exchange>(io_, limits_.unread_bytes);
    const bool keep = message.keep_alive() && !draining_;
    HttpRequest request = request_of(message);
    exchange->head().version(message.version());
    exchange->head().set(http::field::server, kServer);
    exchange->head().set("X-Request-Id", request.id);
    exchange->head().keep_alive(keep);
    exchanges_.insert(exchange);
    const bool without_body = message.method() == http::verb::head;
    handler_(std::move(request), std::make_shared<HeldReply>(io_, exchange));
    const bool went_well = co_await write_answer(stream, *exchange, without_body);
    exchange->leave();
    exchanges_.erase(exchange);
    const bool another = went_well && keep;
    co_return another;
  }

  HttpRequest request_of(http::request<http::string_body>& message) {
    HttpRequest request;
    request.method = text_of(message.method_string());
    const std::string target = text_of(message.target());
    request.path = target.substr(0, target.find('?'));
    request.authorization = text_of(message[http::field::authorization]);
    request.api_key = text_of(message["X-Api-Key"]);
    request.id = text_of(message["X-Request-Id"]);
    if (!is_sound_id(request.id)) request.id = fmt::format("{:016x}", random_());
    request.body = std::move(message.body());
    return request;
  }

  // What could not be read.
  asio::awaitable<void> refuse(beast::tcp_stream& stream, error_code error) {
    unsigned status = 400;
    std::string why = "the request is no HTTP: " + error.message();
    if (error == http::error::end_of_stream || error == asio::error::connection_reset ||
        error == asio::error::operation_aborted || error == http::error::partial_message ||
        error == beast::error::timeout) {
      co_return;
    }
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      status = 431;
      why = fmt::format("the header is longer than {} bytes", limits_.header_bytes);
    } else if (error == http::error::body_limit) {
      status = 413;
      why = fmt::format("the body is longer than {} bytes", limits_.body_bytes);
    }
    http::response<http::string_body> response{http::int_to_status(status), 11};
    response.set(http::field::server, kServer);
    response.set(http::field::content_type, "application/json");
    response.keep_alive(false);
    response.body() = error_body_(status, why);
    response.prepare_payload();
    stream.expires_after(limits_.write);
    co_await http::async_write(stream, response, asio::redirect_error(asio::use_awaitable, error));
    // What the client still sends is read for a moment, else it never sees the answer.
    stream.socket().shutdown(tcp::socket::shutdown_send, error);
    stream.expires_after(std::chrono::seconds(1));
    std::array<char, 4096> ignored;
    for (uint64_t read = 0; !error && read < limits_.body_bytes;) {
      read += co_await stream.async_read_some(asio::buffer(ignored),
                                              asio::redirect_error(asio::use_awaitable, error));
    }
  }

  // Waits until the socket has something to be read, or its end.
  static asio::awaitable<void> readable(beast::tcp_stream& stream) {
    error_code error;
    co_await stream.socket().async_wait(tcp::socket::wait_read,
                                        asio::redirect_error(asio::use_awaitable, error));
  }
  static bool at_end(beast::tcp_stream& stream) {
    char byte = 0;
    const ssize_t read = ::recv(stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return read == 0 || (read < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  }

  // Until the answer is out. False where the connection is of no more use.
  asio::awaitable<bool> write_answer(beast::tcp_stream& stream, Exchange& exchange, bool without_body) {
    error_code error;
    bool listens = true;  // to the client's leaving; what it sends already belongs to its next request
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
        stream.expires_after(limits_.write);
        co_await http::async_write_header(stream, serializer,
                                          asio::redirect_error(asio::use_awaitable, error));
        head_sent = true;
      } else if (head_sent && exchange.has_parts()) {
        const std::string part = exchange.take_part();
        stream.expires_after(limits_.write);
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
          stream.expires_after(limits_.write);
          co_await asio::async_write(stream, http::make_chunk_last(),
                                     asio::redirect_error(asio::use_awaitable, error));
        }
        stream.expires_never();
        co_return !error && (chunked || !exchange.streams());
      } else {
        stream.expires_never();
        bool told = false;
        if (listens) {
          const auto first = co_await (exchange.news(limits_.ping) || readable(stream));
          if (first.index() == 0) {
            told = std::get<0>(first);
          } else if (at_end(stream)) {
            exchange.leave();
            co_return false;
          } else {
            listens = false;
            continue;
          }
        } else {
          told = co_await exchange.news(limits_.ping);
        }
        if (!told && head_sent && !exchange.ping().empty()) exchange.write(exchange.ping());
      }
      if (error) {
        exchange.leave();
        co_return false;
      }
    }
    co_return false;
  }

  Limits limits_;
  Handler handler_;
  ErrorBody error_body_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer grace_;
  uint16_t port_ = 0;
  bool draining_ = false;
  uint32_t connections_ = 0;
  std::set<beast::tcp_stream*> idle_;
  std::set<std::shared_ptr<Exchange>> exchanges_;
  std::mt19937_64 random_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const std::string& host, uint16_t port, Limits limits,
                                                       Handler handler, ErrorBody error_body) {
  auto server = std::make_unique<Server>(limits, std::move(handler), std::move(error_body));
  TIERD_TRY(server->bind(host, port));
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace tierd
