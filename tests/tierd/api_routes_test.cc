// Tests routes without an engine: the answers before a model is loaded, and their clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/store/memory_source.h"
#include "tests/tierd/api_world.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::Pair;

class ApiRoutes : public testing::Test {
 protected:
  ApiRoutes() : tokenizer_(std::move(*make_tokenizer(small_vocab(300), "test"))) {
    Api::Options options{{}, {}, {}, {"key"}, Error{Code::unsupported, "chat", "none"}, {}, true};
    options.model.name = "small";
    options.tiers = {{.name = "dram", .kind = "memory", .capacity_bytes = 0},
                     {.name = "flash", .kind = "files", .used_bytes = 700}};
    api_ = std::make_unique<Api>(std::move(options), *tokenizer_, desk_);
    api_->set_server(server_, reading_);
  }
  std::shared_ptr<HeardReply> answer_to(HttpRequest asked) {
    auto reply = std::make_shared<HeardReply>();
    api_->handle(std::move(asked), reply);
    server_.wait_until([&] { return reply->status != 0; });
    return reply;
  }
  static HttpRequest request(const std::string& method, const std::string& path, bool with_key = true) {
    HttpRequest made;
    made.id = "1";
    made.method = method;
    made.path = path;
    if (with_key) made.authorization = "Bearer key";
    return made;
  }
  unsigned refused(const HttpRequest& head) {
    HeardReply reply;
    return api_->admit(head, reply) ? 0 : reply.status;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  WorkDesk desk_{2};
  PostedWork server_;
  std::unique_ptr<Api> api_;
  ReadingThread reading_{4};  // destroyed first: its work uses the API
};

TEST_F(ApiRoutes, WhoIsRefusedIsRefusedBeforeTheBody) {
  EXPECT_EQ(refused(request("GET", "/nowhere")), 404u);
  EXPECT_EQ(refused(request("GET", "/v1/completions")), 405u);
  EXPECT_EQ(refused(request("POST", "/v1/completions", false)), 401u);
  EXPECT_EQ(refused(request("POST", "/v1/completions")), 503u);
  EXPECT_EQ(refused(request("GET", "/health", false)), 0u);
  EXPECT_EQ(refused(request("HEAD", "/v1/models", false)), 0u);
  EXPECT_EQ(refused(request("POST", "/tokenize")), 0u);
  EXPECT_EQ(refused(request("POST", "/v1/tiers/dram/capacity")), 503u);
  EXPECT_EQ(refused(request("GET", "/v1/tiers", false)), 401u);
  EXPECT_EQ(refused(request("POST", "/v1/tiers/dram/capacity", false)), 401u);
  EXPECT_EQ(refused(request("GET", "/v1/tiers/dram/capacity")), 405u);
  for (const char* path : {"/completion", "/completions", "/chat/completions"})
    EXPECT_EQ(refused(request("POST", path)), 503u) << path;
  EXPECT_EQ(refused(request("OPTIONS", "/v1/chat/completions", false)), 204u);
  for (const char* path : {"/v1/tiers/", "/v1/tiers/dram", "/v1/tiers//capacity", "/v1/tiers/capacity"})
    EXPECT_EQ(refused(request("POST", path)), 404u) << path;
}

TEST_F(ApiRoutes, AKeyIsReadWhateverItsSchemeIsWrittenLike) {
  for (const char* credentials : {"Bearer key", "bearer key", "BEARER  key", "key"}) {
    HttpRequest head = request("GET", "/v1/tiers", false);
    head.authorization = credentials;
    EXPECT_EQ(refused(head), 503u) << credentials;
    std::swap(head.authorization, head.api_key);
    EXPECT_EQ(refused(head), 503u) << credentials;
  }
  for (const char* credentials : {"Bearer", "Bearer ", "Basic key", "Bearer ke", ""}) {
    HttpRequest head = request("GET", "/v1/tiers", false);
    head.authorization = credentials;
    EXPECT_EQ(refused(head), 401u) << credentials;
  }
}

TEST_F(ApiRoutes, TiersAndWhatTheyHold) {
  ServiceState state;
  MemoryCounters counters;
  counters.hits = 5;
  state.tiers = {
      {.name = "dram", .kind = "memory", .capacity_bytes = 1000, .used_bytes = 900, .counters = counters},
      {.name = "flash", .kind = "files", .used_bytes = 700}};
  state.links = {{"flash", "dram", {2, 30, 4000}}};
  api_->set_state(state);
  const auto reply = std::make_shared<HeardReply>();
  api_->handle(request("GET", "/v1/tiers"), reply);
  EXPECT_EQ(reply->body, json::parse(R"({"tiers": [
    {"tier": "dram", "kind": "memory", "count": 1, "over": null, "capacity_bytes": 1000, "used_bytes": 900,
     "neurons": {"hits": 5, "staged": 0, "misses": 0, "evictions": 0}},
    {"tier": "flash", "kind": "files", "count": 1, "over": null, "capacity_bytes": null, "used_bytes": 700}],
    "links": [{"from": "flash", "to": "dram", "messages": 2, "neurons": 30, "bytes": 4000}]})"));
}

TEST_F(ApiRoutes, ACapacityThatCannotBeIsToldBeforeTheEngineHearsOfIt) {
  const auto said = [&](const std::string& tier, const std::string& body) {
    HttpRequest asked = request("POST", "/v1/tiers/" + tier + "/capacity");
    asked.body = body;
    const auto reply = answer_to(asked);
    EXPECT_TRUE(desk_.take().empty());
    return std::to_string(reply->status) + " " + reply->body["error"].value("message", "");
  };
  EXPECT_EQ(said("gpu", R"({"capacity": "1GB"})"), "404 there is no tier 'gpu'");
  EXPECT_EQ(said("flash", R"({"capacity": "1GB"})"), "400 the capacity of tier 'flash' cannot be set");
  for (const char* body : {"", "[]", "{}", R"({"capacity": -1})", R"({"capacity": 1.5})",
                           R"({"capacity": true})", R"({"capacity": null})"})
    EXPECT_TRUE(said("dram", body).starts_with("400 request")) << body;
}

TEST_F(ApiRoutes, HealthTellsHowFarLoadingIs) {
  api_->set_loaded(0.25);
  const auto reply = std::make_shared<HeardReply>();
  api_->handle(request("GET", "/health"), reply);
  EXPECT_EQ(reply->status, 503u);
  EXPECT_EQ(reply->body["error"]["type"], "unavailable_error");
  EXPECT_EQ(reply->body["error"]["message"], "Loading model");
  EXPECT_EQ(reply->body["progress"], 0.25);
  EXPECT_THAT(reply->headers, Contains(Pair("Retry-After", "1")));
}

TEST_F(ApiRoutes, AFullDeskAsksToComeBack) {
  ASSERT_TRUE(desk_.try_leave([] {}));
  ASSERT_TRUE(desk_.try_leave([] {}));
  HttpRequest asked = request("POST", "/v1/completions");
  asked.body = R"({"prompt": [5]})";
  const auto reply = answer_to(asked);
  EXPECT_EQ(reply->status, 429u);
  EXPECT_THAT(reply->headers, Contains(Pair("Retry-After", "1")));
  // Work that must not be lost takes no place in the queue.
  (void)desk_.take();
  desk_.leave([] {}), desk_.leave([] {});
  const auto another = std::make_shared<HeardReply>();
  api_->handle(asked, another);
  std::vector<WorkDesk::Work> left = desk_.take();
  server_.wait_until([&] {
    std::ranges::move(desk_.take(), std::back_inserter(left));
    return left.size() == 3;
  });
  EXPECT_EQ(another->status, 0u);
}

TEST_F(ApiRoutes, WhatTakesLongToReadKeepsNobodyWaiting) {
  std::promise<void> begun, goes_on;
  ASSERT_TRUE(reading_.try_leave([&begun, done = goes_on.get_future().share()] {
    begun.set_value();
    done.wait();
  }));
  begun.get_future().wait();  // later works are counted from here on
  HttpRequest long_one = request("POST", "/tokenize");
  long_one.body = R"({"content": "a"})";
  std::vector<std::shared_ptr<HeardReply>> replies;
  for (int i = 0; i < 6; ++i) {
    replies.push_back(std::make_shared<HeardReply>());
    HttpRequest one = long_one;
    api_->handle(one, replies.back());
  }
  const auto health = std::make_shared<HeardReply>();
  api_->handle(request("GET", "/health"), health);
  EXPECT_EQ(health->status, 503u);  // answered although no model is loaded
  EXPECT_EQ(replies.front()->status, 0u);
  EXPECT_EQ(replies.back()->status, 429u);
  goes_on.set_value();
  server_.wait_until([&] { return replies.front()->status != 0; });
  EXPECT_EQ(replies.front()->status, 200u);
}

TEST_F(ApiRoutes, PagesOfStrangersAreNotListenedTo) {
  const auto with = [&](const std::string& host, const std::string& origin, const std::string& type = {},
                        const std::string& method = "POST") {
    HttpRequest head = request(method, method == "POST" ? "/tokenize" : "/v1/models");
    head.host = host;
    head.origin = origin;
    head.content_type = type;
    return refused(head);
  };
  const std::string here = "localhost:8080", body = "application/json; charset=utf-8";
  for (const char* host : {"", "localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]:8080", "192.168.1.7"})
    EXPECT_EQ(with(host, "", body), 0u) << host;
  for (const char* host :
       {"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", ":80"}) {
    EXPECT_EQ(with(host, "", body), 403u) << host;
    EXPECT_EQ(with(host, "", "", "GET"), 403u) << host;
  }
  EXPECT_EQ(with(here, "http://localhost:8080", body), 0u) << "a page of the server itself";
  for (const char* origin : {"http://evil.example", "null", "http://localhost:9000", "https://localhost"})
    EXPECT_EQ(with(here, origin, body), 403u) << origin;
  EXPECT_EQ(with(here, "http://evil.example", "", "GET"), 0u) << "whose answer it may not read";
  for (const char* type :
       {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json"})
    EXPECT_EQ(with(here, "", type), 415u) << type;
  EXPECT_EQ(with(here, "", ""), 0u);
}

TEST(Origins, ThoseThatAreNamedMayAsk) {
  const Origins some("0.0.0.0", {"My.Host"}, {"https://chat.example"}), all("x", {"*"}, {"*"});
  EXPECT_TRUE(some.is_called("my.host:80"));
  EXPECT_FALSE(some.is_called("other.host"));
  EXPECT_TRUE(some.may_send("https://Chat.example", "my.host"));
  EXPECT_FALSE(some.may_send("http://chat.example", "my.host"));
  HttpRequest head;
  head.origin = "https://chat.example";
  EXPECT_EQ(some.headers(head).front(), std::pair(std::string("Access-Control-Allow-Origin"), head.origin));
  head.origin = "https://evil.example";
  EXPECT_TRUE(some.headers(head).empty());
  EXPECT_TRUE(all.is_called("evil.example"));
  EXPECT_TRUE(all.may_send("https://evil.example", "x"));
  head.origin.clear();
  EXPECT_TRUE(all.headers(head).empty());
}

}  // namespace
}  // namespace tierd
