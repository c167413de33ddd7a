// The routes of the server: OpenAI's and llama-server's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/engine/batcher.h"
#include "core/model/text/tokenizer.h"
#include "tools/tierd/server/api/api_reply.h"
#include "tools/tierd/server/api/completion_request.h"
#include "tools/tierd/server/api/metrics.h"
#include "tools/tierd/server/api/origins.h"
#include "tools/tierd/server/api/reading_thread.h"
#include "tools/tierd/server/api/service_state.h"
#include "tools/tierd/server/api/token_bound.h"
#include "tools/tierd/server/http/http_server.h"
#include "tools/tierd/work_desk.h"

namespace tierd {

// The served model, as clients read it.
struct ServedModel {
  std::string name;  // the name that clients use
  std::string path;
  uint64_t bytes = 0;  // of its tensors
  uint32_t context = 0;
  uint32_t trained_context = 0;
  uint32_t width = 0;  // of the residual stream
  uint32_t sequences = 0;
  uint64_t started = 0;  // s since 1970
};

// The result of a change of a tier's capacity.
struct CapacityChange {
  uint64_t from_bytes = 0;
  uint64_t to_bytes = 0;
  uint64_t used_bytes = 0;
  bool raised_to_least = false;
  nlohmann::json loss = nullptr;  // of the run with the new capacity, see known_loss
};

class Api final : public HttpHandler {
 public:
  struct Options {
    ServedModel model;
    std::vector<ServedTier> tiers;  // before the first set_state
    CompletionDefaults defaults;
    std::vector<std::string> keys;  // a client must send one of them; empty: no key is needed
    Result<ChatTemplate> chat;      // or the reason why chats are refused
    std::vector<WatchedSite> sites;
    bool quiet = false;  // true: no log line for each request and text
    Origins origins = Origins({}, {}, {});
  };
  // The tokenizer and the desk must outlive the object. Call set_server before the first request.
  Api(Options options, const Tokenizer& tokenizer, WorkDesk& desk);

  // [server's thread] Accepts a request if its route exists, its key is valid, the model is loaded, and no
  // foreign page has sent it (Origins).
  bool admit(const HttpRequest& head, HttpReply& reply) override;
  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) override;
  HttpHeaders headers(const HttpRequest& head) const override { return options_.origins.headers(head); }
  void answered(const HttpRecord& record) override;
  std::string error_body(unsigned status, const std::string& message) const override;
  // [any thread] Sets why no request can be answered any more, for /health. Empty: all is well.
  void set_stuck(std::string why) {
    const std::lock_guard lock(mutex_);
    stuck_ = std::move(why);
  }
  void set_server(HttpServer& server, ReadingThread& reading) {
    server_ = &server;
    reading_ = &reading;
  }

  // [any thread] Sets the batcher. While it is NULL, the server answers 503.
  void set_batcher(Batcher* batcher) { batcher_.store(batcher); }
  // [any thread] Sets the loaded share of the resident weights, 0 to 1.
  void set_loaded(double share) { loaded_.store(share); }
  // [engine's thread]
  void set_state(ServiceState state);
  // [engine's thread] Sets the function that changes the capacity of a tier between two steps. Call it before
  // work is taken from the desk. Errors: invalid_argument, no_space (names the least capacity), and others.
  using SetCapacity =
      std::function<Result<CapacityChange>(const std::string& tier, const std::string& capacity)>;
  void set_capacity_by(SetCapacity set_capacity) { set_capacity_ = std::move(set_capacity); }

 private:
  struct Submission;
  // A handler of one route. It may move the request, whose body may be large.
  using Route = void (Api::*)(HttpRequest&, const std::shared_ptr<HttpReply>&);

  struct Entry;
  static std::span<const Entry> entries();
  // Returns the tier that "/v1/tiers/{tier}/capacity" names, or an empty text for another path.
  static std::string_view tier_in(std::string_view path);
  static const Entry* entry_for(const HttpRequest& request);
  bool authorized(const HttpRequest& request) const;
  void health(HttpRequest&, const std::shared_ptr<HttpReply>& reply);
  void models(HttpRequest&, const std::shared_ptr<HttpReply>& reply);
  void props(HttpRequest&, const std::shared_ptr<HttpReply>& reply);
  void slots(HttpRequest&, const std::shared_ptr<HttpReply>& reply);
  void metrics(HttpRequest&, const std::shared_ptr<HttpReply>& reply);
  void tiers(HttpRequest&, const std::shared_ptr<HttpReply>& reply);
  void tier_capacity(HttpRequest& request, const std::shared_ptr<HttpReply>& reply);
  void tokenize(HttpRequest& request, const std::shared_ptr<HttpReply>& reply);
  void detokenize(HttpRequest& request, const std::shared_ptr<HttpReply>& reply);
  void embeddings(HttpRequest&, const std::shared_ptr<HttpReply>& reply);
  void completions(HttpRequest& request, const std::shared_ptr<HttpReply>& reply);
  void native_completions(HttpRequest& request, const std::shared_ptr<HttpReply>& reply);
  void chat_completions(HttpRequest& request, const std::shared_ptr<HttpReply>& reply);
  void apply_template(HttpRequest& request, const std::shared_ptr<HttpReply>& reply);

  void complete(HttpRequest& request, const std::shared_ptr<HttpReply>& reply, BodyForm form);
  void send_no_chat(HttpReply& reply) const;
  std::shared_ptr<const void> room_for(const CompletionRequest& request, HttpReply& reply);
  uint64_t most_tokenized() const;
  void submit(const std::string& request_id, const std::shared_ptr<const CompletionRequest>& request,
              const std::shared_ptr<HttpReply>& reply, BodyForm form);
  void hand_over(const std::shared_ptr<Submission>& submission,
                 const std::vector<std::shared_ptr<Generation>>& generations);

  void ended(const Submission& submission, size_t index, const EndEvent& end);
  ServiceState state();
  Result<nlohmann::json> body_of(const HttpRequest& request) const;
  void set_capacity(const std::string& name, const std::string& capacity,
                    const std::shared_ptr<HttpReply>& reply);

  // Calls `read`, which returns a Result, on the reading thread. Then calls `then` with its value on the
  // server's thread, or sends the error. HttpReply tolerates a client that has left meanwhile.
  template <class Read, class Then>
  void read_apart(const std::shared_ptr<HttpReply>& reply, Read read, Then then) {
    const bool left = reading_->try_leave([this, reply, read = std::move(read), then = std::move(then)] {
      server_->post([reply, then, value = read()]() mutable {
        value.ok() ? then(std::move(*value)) : send(*reply, api_error(value.error()));
      });
    });
    if (!left) send(*reply, api_error(429, "too many requests wait"));
  }

  Options options_;
  Metrics metrics_;
  const Tokenizer& tokenizer_;
  const TokenBound bound_;
  // The bytes of all requests that are not answered yet. A request may outlive this object.
  const std::shared_ptr<std::atomic<uint64_t>> request_bytes_ = std::make_shared<std::atomic<uint64_t>>(0);
  WorkDesk& desk_;
  HttpServer* server_ = nullptr;
  ReadingThread* reading_ = nullptr;
  std::atomic<Batcher*> batcher_{nullptr};
  std::atomic<double> loaded_{0};
  SetCapacity set_capacity_;  // used by the engine's thread alone
  std::mutex mutex_;
  std::string stuck_;   // see set_stuck
  std::string damage_;  // damage of the store that a text has met; empty: none is known
  ServiceState state_;
  std::mt19937_64 random_;
};

}  // namespace tierd
