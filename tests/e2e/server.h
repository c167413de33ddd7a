// Starts tierd as a server in a process of its own and sends it requests over its socket.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/e2e/program.h"
#include "tests/tierd/http_client.h"

namespace tierd {

class Server : public ProgramTest {
 protected:
  void start(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"-m", kDemo, "--port", "0", "-t", "1", "-c", "256", "--temp", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    start_program(std::move(arguments));
  }
  void start_program(std::vector<std::string> arguments) {
    program_ = std::make_unique<StartedProgram>(TIERD_BIN_TIERD, std::move(arguments));
    const std::string mark = "serving on http://127.0.0.1:";
    for (int i = 0; i < 60'000; ++i) {
      const std::string err = program_->err();
      const size_t at = err.find(mark);
      if (at != std::string::npos && err.find('\n', at) != std::string::npos) {
        port_ = static_cast<uint16_t>(std::stoul(err.substr(at + mark.size())));
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    FAIL() << program_->err();
  }
  HttpAnswer post(const std::string& path, const nlohmann::json& body,
                  const std::string& headers = {}) const {
    HttpClient client(port_);
    client.post(path, body.dump(), headers);
    return client.read();
  }
  HttpAnswer get(const std::string& path, const std::string& headers = {}) const {
    HttpClient client(port_);
    client.get(path, headers);
    return client.read();
  }
  nlohmann::json complete(const nlohmann::json& body) const {
    const HttpAnswer answer = post("/v1/completions", body);
    EXPECT_EQ(answer.status, 200u) << answer.body;
    return nlohmann::json::parse(answer.body, nullptr, false);
  }
  // Returns the events of a stream, with "[DONE]" as a string.
  static std::vector<nlohmann::json> events(const std::string& body) {
    std::vector<nlohmann::json> list;
    for (size_t at = 0; at < body.size();) {
      const size_t end = body.find("\n\n", at);
      const std::string event = body.substr(at, end - at);
      at = end == std::string::npos ? body.size() : end + 2;
      if (event.starts_with(":")) continue;
      EXPECT_TRUE(event.starts_with("data: ")) << event;
      const std::string data = event.substr(6);
      list.push_back(data == "[DONE]" ? nlohmann::json(data) : nlohmann::json::parse(data));
    }
    return list;
  }
  // Ends the server as a service manager does.
  Ended end() {
    program_->kill(SIGTERM);
    return program_->wait();
  }
  static std::string error_of(const HttpAnswer& answer) {
    const nlohmann::json body = nlohmann::json::parse(answer.body, nullptr, false);
    return body.is_object() ? body["error"].value("message", "") : answer.body;
  }

  std::unique_ptr<StartedProgram> program_;
  uint16_t port_ = 0;
};

}  // namespace tierd
