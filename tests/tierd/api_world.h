// An Api without a socket and an engine. Work that is posted to its server runs when the test waits for it,
// and replies keep their texts.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/model/text/tokenizer.h"
#include "tools/tierd/server/api/api.h"

namespace tierd {

struct HeardReply final : HttpReply {
  static constexpr size_t kMostParsed = 1u << 20;
  unsigned status = 0;
  std::string text;
  nlohmann::json body;  // parsed, unless the text is too large
  HttpHeaders headers;
  bool over = false;
  void send(unsigned code, std::string_view, std::string sent, HttpHeaders more) override {
    status = code;
    if (sent.size() < kMostParsed) body = nlohmann::json::parse(sent, nullptr, false);
    text = std::move(sent);
    headers = std::move(more);
    over = true;
  }
  void begin(unsigned code, std::string_view, std::string) override { status = code; }
  void write(std::string data) override { text += data; }
  void end() override { over = true; }
  void on_gone(std::function<void()>) override {}
};

class PostedWork final : public HttpServer {
 public:
  uint16_t port() const override { return 0; }
  void run() override {}
  void post(std::function<void()> work) override { desk_.leave(std::move(work)); }
  void drain(std::chrono::milliseconds) override {}
  void stop() override {}
  void wait_until(const std::function<bool()>& done) {
    while (!done()) {
      for (const WorkDesk::Work& work : desk_.take()) work();
      if (!done()) desk_.wait(std::chrono::seconds(10));
    }
  }

 private:
  WorkDesk desk_{1};
};

// Returns a vocabulary of bytes: a text has as many tokens as bytes.
inline Vocab byte_vocab() {
  Vocab vocab;
  const auto add = [&](std::string piece, TokenType type) {
    vocab.pieces.push_back(std::move(piece));
    vocab.scores.push_back(0);
    vocab.types.push_back(type);
  };
  add("<unk>", TokenType::unknown);
  add("<s>", TokenType::control);
  add("</s>", TokenType::control);
  constexpr const char* kHex = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte)
    add(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">", TokenType::byte);
  vocab.unknown = 0;
  vocab.bos = 1;
  vocab.eos = 2;
  vocab.end_tokens = {2};
  vocab.add_space_prefix = false;
  return vocab;
}

}  // namespace tierd
