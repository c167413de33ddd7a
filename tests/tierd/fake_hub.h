// A hub of models on the loopback interface that serves, breaks off, redirects or refuses as a test asks.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tools/tierd/hub/digest.h"

namespace tierd {

// A received request.
struct Seen {
  std::string path;                            // with its query
  std::map<std::string, std::string> headers;  // names in lower case
};

struct Answer {
  unsigned status = 200;
  std::map<std::string, std::string> headers = {};
  std::string body = {};
  bool length = true;                   // sends Content-Length
  size_t cut = std::string::npos;       // bytes of head and body after which the connection is closed
  size_t cut_body = std::string::npos;  // the same, counted in the body
  bool stalls = false;                  // the connection stays open there, and no more bytes are sent
};

class FakeHub {
 public:
  // The blob of a large file is named by its SHA-256, others by their SHA-1 in git.
  FakeHub() : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      std::abort();
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~FakeHub() {
    ends_.store(true);
    acceptor_.join();
    for (std::thread& connection : connections_) connection.join();
    ::close(listener_);
  }
  FakeHub(const FakeHub&) = delete;
  FakeHub& operator=(const FakeHub&) = delete;

  std::string url(const std::string& host = "127.0.0.1") const {
    return "http://" + host + ":" + std::to_string(port_);
  }
  static std::string hash_of(const std::string& bytes, bool large) {
    Digest digest(large ? 64 : 40, bytes.size());
    digest.add(std::as_bytes(std::span(bytes)));
    return digest.finish();
  }

  // The files of repository owner/repo. Set them before the first request.
  struct File {
    std::string bytes;
    bool large = true;
  };
  std::map<std::string, File> files;
  std::string commit = std::string(40, 'c');
  // Called first. Without an answer of its own, the hub answers normally. [under a lock]
  std::function<std::optional<Answer>(const Seen&)> hook;

  std::string hash(const std::string& name) const {
    return hash_of(files.at(name).bytes, files.at(name).large);
  }

  nlohmann::json listing() const {
    nlohmann::json siblings = nlohmann::json::array();
    for (const auto& [name, file] : files) {
      nlohmann::json one = {
          {"rfilename", name}, {"size", file.bytes.size()}, {"blobId", std::string(40, 'b')}};
      if (file.large) {
        one["lfs"] = {{"sha256", hash(name)}, {"size", file.bytes.size()}, {"pointerSize", 134}};
      } else {
        one["blobId"] = hash(name);
      }
      siblings.push_back(one);
    }
    return {{"id", "owner/repo"}, {"sha", commit}, {"siblings", siblings}};
  }

  // Returns the file that a request names, in the requested range.
  Answer serve(const Seen& seen) const {
    if (seen.path == "/api/models/owner/repo/revision/main?blobs=true") return {.body = listing().dump()};
    const std::string prefix = "/owner/repo/resolve/" + commit + "/";
    if (!seen.path.starts_with(prefix) || !files.contains(seen.path.substr(prefix.size())))
      return {.status = 404, .headers = {{"X-Error-Code", "EntryNotFound"}}, .body = "Entry not found"};
    const std::string name = seen.path.substr(prefix.size());
    const std::string& bytes = files.at(name).bytes;
    const std::string etag = '"' + hash(name) + '"';
    const auto range = seen.headers.find("range");
    const auto condition = seen.headers.find("if-range");
    if (range == seen.headers.end() || (condition != seen.headers.end() && condition->second != etag))
      return {.headers = {{"ETag", etag}}, .body = bytes};
    const size_t from = std::stoul(range->second.substr(6));
    if (from >= bytes.size()) return {.status = 416};
    return {.status = 206,
            .headers = {{"ETag", etag},
                        {"Content-Range", "bytes " + std::to_string(from) + "-" +
                                              std::to_string(bytes.size() - 1) + "/" +
                                              std::to_string(bytes.size())}},
            .body = bytes.substr(from)};
  }

  std::vector<Seen> seen() const {
    const std::lock_guard guard(mutex_);
    return seen_;
  }
  // Returns the requests whose path contains `part`.
  std::vector<Seen> seen(const std::string& part) const {
    std::vector<Seen> found;
    for (const Seen& one : seen()) {
      if (one.path.find(part) != std::string::npos) found.push_back(one);
    }
    return found;
  }

 private:
  bool readable(int socket) const {
    while (!ends_.load()) {
      pollfd waits{socket, POLLIN, 0};
      if (::poll(&waits, 1, 20) > 0) return true;
    }
    return false;
  }

  void accept_all() {
    while (readable(listener_)) {
      const int socket = ::accept(listener_, nullptr, nullptr);
      if (socket >= 0) connections_.emplace_back([this, socket] { converse(socket); });
    }
  }

  void converse(int socket) {
    std::string head;
    while (head.find("\r\n\r\n") == std::string::npos && readable(socket)) {
      char bytes[4096];
      const ssize_t got = ::recv(socket, bytes, sizeof bytes, 0);
      if (got <= 0) break;
      head.append(bytes, static_cast<size_t>(got));
    }
    if (head.find("\r\n\r\n") != std::string::npos) reply(socket, parsed(head));
    ::close(socket);
  }

  static Seen parsed(const std::string& head) {
    Seen seen;
    const size_t path = head.find(' ') + 1;
    seen.path = head.substr(path, head.find(' ', path) - path);
    for (size_t at = head.find("\r\n") + 2; at < head.size() - 2;) {
      const size_t end = head.find("\r\n", at), colon = head.find(": ", at);
      std::string name = head.substr(at, colon - at);
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      seen.headers[name] = head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    return seen;
  }

  void reply(int socket, const Seen& seen) {
    Answer answer;
    {
      const std::lock_guard guard(mutex_);
      seen_.push_back(seen);
      auto hooked = hook ? hook(seen) : std::nullopt;
      answer = hooked ? std::move(*hooked) : serve(seen);
    }
    std::string text = "HTTP/1.1 " + std::to_string(answer.status) + " x\r\nConnection: close\r\n";
    for (const auto& [name, value] : answer.headers) text += name + ": " + value + "\r\n";
    if (answer.length) text += "Content-Length: " + std::to_string(answer.body.size()) + "\r\n";
    text += "\r\n";
    if (answer.cut_body != std::string::npos) answer.cut = text.size() + answer.cut_body;
    text += answer.body;
    text.resize(std::min(text.size(), answer.cut));
    for (size_t at = 0; at < text.size() && !ends_.load();) {
      const ssize_t sent = ::send(socket, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += static_cast<size_t>(sent);
    }
    // Waits until the client has gone.
    if (answer.stalls) (void)readable(socket);
  }

  int listener_;
  uint16_t port_ = 0;
  std::atomic<bool> ends_{false};
  mutable std::mutex mutex_;
  std::vector<Seen> seen_;
  std::thread acceptor_;
  std::vector<std::thread> connections_;
};

}  // namespace tierd
