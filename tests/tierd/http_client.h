// A client that sends any text, right or wrong, and waits for an answer for at most half a minute.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <map>
#include <string>
#include <string_view>

namespace tierd {

struct HttpAnswer {
  unsigned status = 0;                         // 0: the connection ended without an answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // without chunk headers
};

class HttpClient {
 public:
  // `patience`: seconds to wait for each part of an answer.
  explicit HttpClient(uint16_t port, long patience = 30) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval most{patience, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
                 (errno == EINTR && connects());
  }
  ~HttpClient() { leave(); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // If it returns false, errno has the reason.
  bool connected() const { return connected_; }
  void leave() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }
  // Ends the client's side of the connection.
  void shut() { ::shutdown(socket_, SHUT_WR); }
  void send(std::string_view text) { (void)!::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  void post(const std::string& path, const std::string& body, const std::string& headers = {}) {
    send("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  void get(const std::string& path, const std::string& headers = {}) {
    send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  }

  // Returns the bytes up to and including `mark`, or an empty text where the connection ends first.
  std::string read_to(std::string_view mark) {
    for (;;) {
      const size_t at = unread_.find(mark);
      if (at != std::string::npos) return take(at + mark.size());
      if (!fill()) return {};
    }
  }
  // Reads the next answer to its end.
  HttpAnswer read() {
    HttpAnswer answer;
    const std::string head = read_to("\r\n\r\n");
    if (head.size() < 12) return answer;
    answer.status = static_cast<unsigned>(std::stoul(head.substr(9, 3)));
    for (size_t at = head.find("\r\n") + 2; at < head.size() - 2;) {
      const size_t end = head.find("\r\n", at), colon = head.find(": ", at);
      std::string name = head.substr(at, colon - at);
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      answer.headers[name] = head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    if (answer.headers.contains("content-length")) {
      answer.body = read_bytes(std::stoul(answer.headers["content-length"]));
    } else if (answer.headers["transfer-encoding"] == "chunked") {
      while (!(last_chunk_ = read_chunk()).empty()) answer.body += last_chunk_;
    } else if (answer.status >= 200) {
      while (fill()) {
      }
      answer.body = take(unread_.size());
    }
    return answer;
  }
  // Reads until the connection ends.
  std::string read_to_end() {
    while (fill()) {
    }
    return take(unread_.size());
  }

 private:
  // After a signal, such as a fuzzer's alarm, the system continues to connect.
  bool connects() const {
    pollfd writable{socket_, POLLOUT, 0};
    while (::poll(&writable, 1, -1) < 0 && errno == EINTR) {
    }
    socklen_t size = sizeof errno;
    return ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &errno, &size) == 0 && errno == 0;
  }
  bool fill() {
    char bytes[4096];
    ssize_t read;
    do {
      read = ::recv(socket_, bytes, sizeof bytes, 0);
    } while (read < 0 && errno == EINTR);
    if (read <= 0) return false;
    unread_.append(bytes, static_cast<size_t>(read));
    return true;
  }
  std::string take(size_t bytes) {
    std::string taken = unread_.substr(0, bytes);
    unread_.erase(0, bytes);
    return taken;
  }
  std::string read_bytes(size_t bytes) {
    while (unread_.size() < bytes && fill()) {
    }
    return take(std::min(bytes, unread_.size()));
  }
  std::string read_chunk() {
    const std::string head = read_to("\r\n");
    const size_t bytes = head.empty() ? 0 : std::stoul(head, nullptr, 16);
    std::string chunk = read_bytes(bytes);
    (void)read_to("\r\n");
    return chunk;
  }

  int socket_;
  bool connected_ = false;
  std::string unread_;
  std::string last_chunk_;
};

}  // namespace tierd
