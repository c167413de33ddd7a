#include "tools/tierd/server/http/http_server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <filesystem>
#include <iterator>
#include <map>
#include <random>
#include <set>

#include "tools/tierd/server/http/http_exchange.h"

namespace tierd {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr const char* kServer = "tierd";
constexpr size_t kLongestId = 128;
// Pause after a connection could not be accepted.
constexpr std::chrono::milliseconds kPause{10};

// Returns whether a client's id may be written into logs.
bool is_sound_id(std::string_view id) {
  return !id.empty() && id.size() <= kLongestId && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
}

std::string text_of(boost::beast::string_view view) {
  return {view.data(), view.size()};
}

// Descriptors that the process needs beside connections: stores, plugins, queues.
constexpr uint64_t kOtherDescriptors = 64;
constexpr uint64_t kLeastConnections = 4;

// Returns how many of the wanted connections the process may open.
Result<uint32_t> affordable(uint32_t connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return connections;
  std::error_code unknown;
  const std::filesystem::directory_iterator open("/proc/self/fd", unknown);
  const auto taken = static_cast<uint64_t>(std::distance(begin(open), end(open))) + kOtherDescriptors;
  if (limit.rlim_cur < taken + kLeastConnections) {
    return Error{
        Code::no_space, "descriptors",
        fmt::format("the process may open {} files, but a server needs {}; raise the limit with ulimit -n",
                    uint64_t{limit.rlim_cur}, taken + kLeastConnections)};
  }
  return static_cast<uint32_t>(std::min<uint64_t>(connections, limit.rlim_cur - taken));
}

// The request target in RFC 9112's terms: the authority of an absolute form, and the path.
struct Target {
  std::string_view authority;  // empty in other forms
  std::string_view path;       // before '?'
};
Target target_of(std::string_view target) {
  Target parts;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!boost::beast::iequals(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    parts.authority = target.substr(0, end);
    target = target.substr(end);
    if (target.empty() || target.front() == '?') target = "/";
    break;
  }
  parts.path = target.substr(0, target.find('?'));
  return parts;
}

// A body's part of the bytes that all bodies may take. It may be destroyed on any thread, before the server.
class BodyShare {
 public:
  explicit BodyShare(std::atomic<uint64_t>& all) : all_(all) {}
  ~BodyShare() { set(0); }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;
  uint64_t bytes() const { return bytes_; }
  void set(uint64_t bytes) {
    all_ += bytes - bytes_;
    bytes_ = bytes;
  }

 private:
  std::atomic<uint64_t>& all_;
  uint64_t bytes_ = 0;
};

class Server final : public HttpServer {
 public:
  Server(Limits limits, HttpHandler& handler)
      : limits_(limits),
        handler_(handler),
        acceptor_(io_),
        room_(io_),
        grace_(io_),
        random_(std::random_device()()) {
    room_.expires_at(asio::steady_timer::time_point::max());
  }

  Status bind(const std::string& host, uint16_t port) {
    const auto failed = [&](const error_code& error) {
      return Error{Code::io_error, fmt::format("{}:{}", host, port),
                   fmt::format("cannot listen: {}; set another --host or --port", error.message())};
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
    error_code ignored;
    acceptor_.close(ignored);
    // Marks all exchanges as left and runs the work that was posted meanwhile. Coroutines that wait are
    // destroyed with the sockets.
    for (const std::shared_ptr<HttpExchange>& exchange : std::set(exchanges_)) exchange->leave();
    io_.restart();
    io_.poll();
  }
  void post(std::function<void()> work) override { asio::post(io_, std::move(work)); }
  void drain(std::chrono::milliseconds grace) override {
    error_code ignored;
    if (!draining_) {
      acceptor_.close(ignored);
      room_.cancel();
      for (const auto& [number, awaited] : awaited_) {
        if (awaited.idle) awaited.stream->socket().shutdown(tcp::socket::shutdown_receive, ignored);
      }
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
  // A connection whose next request is not complete.
  struct Awaited {
    beast::tcp_stream* stream = nullptr;
    bool idle = false;          // no byte of the request has arrived
    BodyShare* body = nullptr;  // the bytes of its body so far
  };

  void end_if_drained() {
    if (draining_ && connections_ == 0) io_.stop();
  }

  asio::awaitable<void> accept() {
    while (!draining_) {
      error_code error;
      tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) co_return;
      if (error) {  // such as too many open files, which may be temporary
        if (error == asio::error::no_descriptors) close_longest_awaited();
        asio::steady_timer pause(io_, kPause);
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
        continue;
      }
      // Without a free place, new connections wait in the system's queue.
      while (connections_ >= limits_.connections && !draining_) {
        close_longest_awaited();
        co_await room_.async_wait(asio::redirect_error(asio::use_awaitable, error));
      }
      if (draining_) co_return;
      ++connections_;
      asio::co_spawn(io_, serve(std::move(socket)), [this](const std::exception_ptr&) {
        --connections_;
        room_.cancel();
        end_if_drained();
      });
    }
  }

  // Closes the connection whose request has been awaited for longest: it may never send one.
  void close_longest_awaited() {
    if (!awaited_.empty()) send_away(awaited_.begin());
  }
  void send_away(std::map<uint64_t, Awaited>::iterator awaited) {
    error_code ignored;
    awaited->second.stream->socket().shutdown(tcp::socket::shutdown_both, ignored);
    awaited_.erase(awaited);
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

  using Parser = http::request_parser<http::string_body>;

  // Reads one request and answers it. Returns whether the connection may have another one.
  asio::awaitable<bool> answer_next(beast::tcp_stream& stream, beast::flat_buffer& buffer) {
    const uint64_t number = ++requests_;
    const auto share = std::make_shared<BodyShare>(bodies_bytes_);
    awaited_.emplace(number, Awaited{&stream, buffer.size() == 0, share.get()});
    room_.cancel();
    Parser parser;
    parser.header_limit(limits_.header_bytes);
    parser.body_limit(limits_.body_bytes);
    const bool has_head = co_await read_head(stream, buffer, parser, number);
    if (!has_head) {
      awaited_.erase(number);
      co_return false;
    }
    const auto begun = std::chrono::steady_clock::now();
    HttpRequest request = request_of(parser.get());
    HttpRecord record{request.id, request.method, request.path};
    const auto exchange = std::make_shared<HttpExchange>(io_, limits_.unread_bytes);
    for (const auto& [name, value] : handler_.headers(request)) exchange->head().set(name, value);
    const bool admitted = handler_.admit(request, *exchange);
    bool read_whole = parser.is_done();
    if (admitted && !read_whole) {
      read_whole = co_await read_body(stream, buffer, parser, *share, number);
      if (!read_whole) {
        awaited_.erase(number);
        co_return false;
      }
    }
    awaited_.erase(number);
    stream.expires_never();
    if (buffer.size() == 0) buffer.shrink_to_fit();
    http::request<http::string_body> message = parser.release();
    const bool keep = message.keep_alive() && !draining_ && read_whole;
    exchange->head().version(message.version());
    exchange->head().set(http::field::server, kServer);
    exchange->head().set("X-Request-Id", request.id);
    exchange->head().keep_alive(keep);
    const bool without_body = message.method() == http::verb::head;
    if (admitted) {
      exchanges_.insert(exchange);
      request.body = std::move(message.body());
      request.room = share;
      handler_.handle(std::move(request), std::make_shared<HeldHttpReply>(io_, exchange));
    }
    const bool went_well = co_await write_answer(stream, *exchange, limits_, without_body);
    if (exchange->begun()) record.status = exchange->head().result_int();
    record.heard = exchange->over() && !exchange->left();
    record.took = std::chrono::steady_clock::now() - begun;
    exchange->leave();
    exchanges_.erase(exchange);
    handler_.answered(record);
    if (went_well && !read_whole) co_await drop_rest(stream);
    const bool another = went_well && keep;
    co_return another;
  }

  asio::awaitable<bool> read_head(beast::tcp_stream& stream, beast::flat_buffer& buffer, Parser& parser,
                                  uint64_t number) {
    error_code error;
    if (buffer.size() == 0) {
      stream.expires_after(limits_.idle);
      const size_t read =
          co_await stream.async_read_some(buffer.prepare(std::min<size_t>(4096, limits_.header_bytes)),
                                          asio::redirect_error(asio::use_awaitable, error));
      if (error || draining_) co_return false;
      buffer.commit(read);
      const auto awaited = awaited_.find(number);
      if (awaited != awaited_.end()) awaited->second.idle = false;
    }
    stream.expires_after(limits_.header);
    co_await http::async_read_header(stream, buffer, parser,
                                     asio::redirect_error(asio::use_awaitable, error));
    if (error) {
      co_await refuse(stream, error);
      co_return false;
    }
    // Beast treats a body of any other coding as the next request.
    const auto coding = parser.get()[http::field::transfer_encoding];
    const bool readable = coding.empty() || boost::beast::iequals(coding, "chunked");
    if (!readable) co_await refuse(stream, 501, "the only supported Transfer-Encoding is 'chunked'");
    co_return readable;
  }

  asio::awaitable<bool> read_body(beast::tcp_stream& stream, beast::flat_buffer& buffer, Parser& parser,
                                  BodyShare& share, uint64_t number) {
    error_code error;
    stream.expires_after(limits_.body);
    if (boost::beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      const http::response<http::empty_body> go_on{http::status::continue_, parser.get().version()};
      co_await http::async_write(stream, go_on, asio::redirect_error(asio::use_awaitable, error));
    }
    while (!error && !parser.is_done()) {
      co_await http::async_read_some(stream, buffer, parser,
                                     asio::redirect_error(asio::use_awaitable, error));
      if (!awaited_.contains(number)) co_return false;  // make_room has closed it for another request
      share.set(parser.get().body().size());
      if (!make_room(number)) {
        co_await refuse(stream, 503, "the bodies being received leave no memory for this one; try again");
        co_return false;
      }
    }
    if (error) co_await refuse(stream, error);
    const bool has_body = !error;
    co_return has_body;
  }

  // Makes room in the limit for all bodies. Returns false where request `number` has the oldest incomplete
  // body, or where no incomplete body has bytes.
  bool make_room(uint64_t number) {
    while (bodies_bytes_ > limits_.all_bodies_bytes) {
      const auto oldest = std::ranges::find_if(
          awaited_, [](const auto& awaited) { return awaited.second.body->bytes() != 0; });
      if (oldest == awaited_.end() || oldest->first == number) return false;
      oldest->second.body->set(0);
      send_away(oldest);
    }
    return true;
  }

  // Returns the request without its body.
  HttpRequest request_of(const http::request<http::string_body>& message) {
    HttpRequest request;
    request.method = text_of(message.method_string());
    const std::string sent = text_of(message.target());
    const Target target = target_of(sent);
    request.path = target.path;
    request.authorization = text_of(message[http::field::authorization]);
    request.api_key = text_of(message["X-Api-Key"]);
    request.host =
        target.authority.empty() ? text_of(message[http::field::host]) : std::string(target.authority);
    request.origin = text_of(message[http::field::origin]);
    request.content_type = text_of(message[http::field::content_type]);
    request.id = text_of(message["X-Request-Id"]);
    if (!is_sound_id(request.id)) request.id = fmt::format("{:016x}", random_());
    return request;
  }

  // Refuses a request that could not be read. A client that has gone or has timed out gets no answer.
  asio::awaitable<void> refuse(beast::tcp_stream& stream, error_code error) {
    unsigned status = 400;
    std::string why = "the request is not HTTP: " + error.message();
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
    co_await refuse(stream, status, std::move(why));
  }

  asio::awaitable<void> refuse(beast::tcp_stream& stream, unsigned status, std::string why) {
    error_code error;
    handler_.answered({{}, {}, {}, status, true, {}});
    http::response<http::string_body> response{http::int_to_status(status), 11};
    response.set(http::field::server, kServer);
    response.set(http::field::content_type, "application/json");
    response.keep_alive(false);
    if (status == 503) response.set(http::field::retry_after, "1");
    response.body() = handler_.error_body(status, why);
    response.prepare_payload();
    stream.expires_after(limits_.write);
    co_await http::async_write(stream, response, asio::redirect_error(asio::use_awaitable, error));
    if (!error) co_await drop_rest(stream);
  }

  // Reads what the client still sends for a moment, since a reset would destroy the unread answer.
  asio::awaitable<void> drop_rest(beast::tcp_stream& stream) const {
    error_code error;
    stream.socket().shutdown(tcp::socket::shutdown_send, error);
    stream.expires_after(std::chrono::seconds(1));
    std::array<char, 4096> ignored;
    for (uint64_t read = 0; !error && read < limits_.body_bytes;) {
      read += co_await stream.async_read_some(asio::buffer(ignored),
                                              asio::redirect_error(asio::use_awaitable, error));
    }
  }

  Limits limits_;
  HttpHandler& handler_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer room_;  // never expires; cancelled when a connection may have become free
  asio::steady_timer grace_;
  uint16_t port_ = 0;
  bool draining_ = false;
  uint32_t connections_ = 0;
  uint64_t requests_ = 0;
  std::atomic<uint64_t> bodies_bytes_ = 0;
  std::map<uint64_t, Awaited> awaited_;  // by number of the request: the longest awaited first
  std::set<std::shared_ptr<HttpExchange>> exchanges_;
  std::mt19937_64 random_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const std::string& host, uint16_t port, Limits limits,
                                                       HttpHandler& handler) {
  TIERD_ASSIGN(limits.connections, affordable(limits.connections));
  auto server = std::make_unique<Server>(limits, handler);
  TIERD_TRY(server->bind(host, port));
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace tierd
