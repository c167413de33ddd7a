// tierd as a server, over its socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/e2e/program.h"
#include "tests/tierd/http_client.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Server : public ProgramTest {
 protected:
  void start(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"-m", kDemo, "--port", "0", "-t", "1", "-c", "256", "--temp", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    start_program(std::move(arguments));
  }
  void start_program(std::vector<std::string> arguments) {
    program_ = std::make_unique<Program>(TIERD_BIN_TIERD, std::move(arguments));
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
  HttpAnswer post(const std::string& path, const json& body, const std::string& headers = {}) const {
    HttpClient client(port_);
    client.post(path, body.dump(), headers);
    return client.read();
  }
  HttpAnswer get(const std::string& path, const std::string& headers = {}) const {
    HttpClient client(port_);
    client.get(path, headers);
    return client.read();
  }
  json complete(const json& body) const {
    const HttpAnswer answer = post("/v1/completions", body);
    EXPECT_EQ(answer.status, 200u) << answer.body;
    return json::parse(answer.body, nullptr, false);
  }
  // The events of a stream, "[DONE]" as a string.
  static std::vector<json> events(const std::string& body) {
    std::vector<json> list;
    for (size_t at = 0; at < body.size();) {
      const size_t end = body.find("\n\n", at);
      const std::string event = body.substr(at, end - at);
      at = end == std::string::npos ? body.size() : end + 2;
      if (event.starts_with(":")) continue;
      EXPECT_TRUE(event.starts_with("data: ")) << event;
      const std::string data = event.substr(6);
      list.push_back(data == "[DONE]" ? json(data) : json::parse(data));
    }
    return list;
  }
  // Ends it as a service manager does.
  Ended end() {
    program_->kill(SIGTERM);
    return program_->wait();
  }
  static std::string error_of(const HttpAnswer& answer) {
    const json body = json::parse(answer.body, nullptr, false);
    return body.is_object() ? body["error"].value("message", "") : answer.body;
  }

  std::unique_ptr<Program> program_;
  uint16_t port_ = 0;
};

TEST_F(Server, SaysWhatItIs) {
  start({"-np", "3", "--alias", "bard"});
  EXPECT_EQ(json::parse(get("/health").body), json::parse(R"({"status": "ok"})"));
  const json models = json::parse(get("/v1/models").body);
  EXPECT_EQ(models["data"][0]["id"], "bard");
  EXPECT_EQ(models["data"][0]["meta"]["n_ctx"], 256);
  EXPECT_EQ(json::parse(get("/props").body)["total_slots"], 3);
  EXPECT_THAT(json::parse(get("/slots").body), SizeIs(3));
  EXPECT_EQ(post("/v1/embeddings", {{"input", "x"}}).status, 501u);
  EXPECT_EQ(get("/nowhere").status, 404u);
  EXPECT_EQ(get("/v1/completions").status, 405u);
  const Ended ended = end();
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out, "");
}

TEST_F(Server, TokensThereAndBack) {
  start();
  const json tokens = json::parse(post("/tokenize", {{"content", "First Citizen:"}}).body)["tokens"];
  EXPECT_FALSE(tokens.empty());
  EXPECT_EQ(json::parse(post("/detokenize", {{"tokens", tokens}}).body)["content"], "First Citizen:");
  const json pieces =
      json::parse(post("/tokenize", {{"content", "First"}, {"with_pieces", true}}).body)["tokens"];
  EXPECT_EQ(pieces[0]["id"], tokens[0]);
  EXPECT_EQ(post("/detokenize", {{"tokens", {99999999}}}).status, 400u);
  EXPECT_EQ(post("/tokenize", json::object()).status, 400u);
}

TEST_F(Server, ATextIsTheOneThatTheTerminalGives) {
  const Ended alone =
      run_tierd({"-m", kDemo, "-p", "First Citizen:", "-n", "24", "-t", "1", "--temp", "0", "-q"});
  start();
  const json answer = complete({{"prompt", "First Citizen:"}, {"max_tokens", 24}});
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["choices"][0]["text"], alone.out);
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 24);
  EXPECT_EQ(answer["timings"]["predicted_n"], 24);
  EXPECT_EQ(answer["usage"]["total_tokens"].get<int>(), answer["usage"]["prompt_tokens"].get<int>() + 24);

  // A seed gives the same text here and there.
  const Ended lively =
      run_tierd({"-m", kDemo, "-p", "The", "-n", "16", "-t", "1", "--temp", "1", "-s", "5", "-q"});
  EXPECT_EQ(
      complete(
          {{"prompt", "The"}, {"max_tokens", 16}, {"temperature", 1}, {"seed", 5}})["choices"][0]["text"],
      lively.out);
}

TEST_F(Server, AStreamSaysTheSameToTheLetter) {
  start();
  const json whole = complete({{"prompt", "First Citizen:"}, {"max_tokens", 12}});
  const HttpAnswer answer = post("/v1/completions", {{"prompt", "First Citizen:"},
                                                     {"max_tokens", 12},
                                                     {"stream", true},
                                                     {"stream_options", {{"include_usage", true}}},
                                                     {"return_progress", true}});
  EXPECT_EQ(answer.headers.at("content-type"), "text/event-stream");
  const std::vector<json> all = events(answer.body);
  ASSERT_GE(all.size(), 5u);
  EXPECT_EQ(all.back(), "[DONE]");
  EXPECT_TRUE(all.front().contains("prompt_progress")) << all.front();
  const json& usage = all[all.size() - 2];
  EXPECT_THAT(usage["choices"], SizeIs(0));
  EXPECT_EQ(usage["usage"]["completion_tokens"], 12);
  const json& last = all[all.size() - 3];
  EXPECT_EQ(last["choices"][0]["finish_reason"], "length");
  EXPECT_TRUE(last.contains("timings"));
  std::string text;
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    EXPECT_EQ(all[i]["id"], all[0]["id"]);
    if (!all[i]["choices"].empty()) text += all[i]["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(text, whole["choices"][0]["text"]);
}

TEST_F(Server, AChatHasItsRoleOnceAndItsContentBetween) {
  EXPECT_THAT(run_tierd({"-m", kDemo, "--port", "0", "--chat-template", "no"}).err,
              HasSubstr("known are chatml"));
  start({"--chat-template", "vicuna"});
  const json chat = {{"messages", {{{"role", "user"}, {"content", "Speak."}}}}, {"max_tokens", 8}};
  EXPECT_EQ(json::parse(post("/apply-template", chat).body)["prompt"], "USER: Speak.\nASSISTANT:");
  const json whole = json::parse(post("/v1/chat/completions", chat).body);
  EXPECT_EQ(whole["object"], "chat.completion");
  EXPECT_EQ(whole["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(whole["choices"][0]["message"]["content"],
            complete({{"prompt", "USER: Speak.\nASSISTANT:"}, {"max_tokens", 8}})["choices"][0]["text"]);
  json streamed = chat;
  streamed["stream"] = true;
  streamed["logprobs"] = true;
  streamed["top_logprobs"] = 2;
  const std::vector<json> all = events(post("/v1/chat/completions", streamed).body);
  std::string text;
  int roles = 0, tokens = 0;
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const json& choice = all[i]["choices"][0];
    roles += choice["delta"].contains("role") ? 1 : 0;
    text += choice["delta"].value("content", "");
    for (const json& token : choice["logprobs"]["content"]) {
      ++tokens;
      EXPECT_LE(token["logprob"].get<double>(), 0);
      EXPECT_THAT(token["top_logprobs"], SizeIs(2));
      EXPECT_EQ(token["top_logprobs"][0]["logprob"], token["logprob"]);  // greedy
    }
  }
  EXPECT_EQ(roles, 1);
  EXPECT_TRUE(all[0]["choices"][0]["delta"].contains("role"));
  EXPECT_EQ(tokens, 8);
  EXPECT_EQ(text, whole["choices"][0]["message"]["content"]);
  EXPECT_TRUE(all[all.size() - 2]["choices"][0]["delta"].empty());
}

TEST_F(Server, AModelWithoutAChatTemplateSaysSo) {
  start();
  const HttpAnswer answer =
      post("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "x"}}}}});
  EXPECT_EQ(answer.status, 501u);
  EXPECT_THAT(error_of(answer), HasSubstr("--chat-template: chatml"));
}

TEST_F(Server, AStopStringEndsTheTextBeforeIt) {
  start();
  const std::string text = complete({{"prompt", "First Citizen:"}, {"max_tokens", 24}})["choices"][0]["text"];
  ASSERT_GT(text.size(), 12u);
  const std::string stop = text.substr(8, 3);
  const json stopped =
      complete({{"prompt", "First Citizen:"}, {"max_tokens", 24}, {"stop", {stop, "never"}}});
  EXPECT_EQ(stopped["choices"][0]["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(stopped["choices"][0]["finish_reason"], "stop");
}

TEST_F(Server, EchoWithLogprobsScoresThePrompt) {
  start();
  const json answer =
      complete({{"prompt", "First Citizen:"}, {"max_tokens", 1}, {"echo", true}, {"logprobs", 1}});
  const json& choice = answer["choices"][0];
  EXPECT_TRUE(choice["text"].get<std::string>().starts_with("First Citizen:"));
  const json& logprobs = choice["logprobs"];
  const size_t n = answer["usage"]["prompt_tokens"].get<size_t>() + 1;
  for (const char* key : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
    EXPECT_THAT(logprobs[key], SizeIs(n));
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  for (size_t i = 1; i < n; ++i) EXPECT_LE(logprobs["token_logprobs"][i].get<double>(), 0);
  EXPECT_EQ(logprobs["top_logprobs"][n - 1].begin().value(), logprobs["token_logprobs"][n - 1]);
  for (size_t i = 1; i < n; ++i) {
    // The token itself is among them, whatever its rank.
    const std::string token = logprobs["tokens"][i];
    EXPECT_EQ(logprobs["top_logprobs"][i].at(token), logprobs["token_logprobs"][i]);
  }
  // Where each token's text begins, in characters of the answer.
  const std::string text = choice["text"];
  for (size_t i = 0; i < n; ++i) {
    const size_t at = logprobs["text_offset"][i];
    ASSERT_LE(at, text.size());
    const std::string token = logprobs["tokens"][i];
    if (at != 0) {
      EXPECT_EQ(text.substr(at, token.size()), token) << i;
    }
  }
}

TEST_F(Server, WhatASamplerRefusesIsTheClientsError) {
  start();
  json body = {{"prompt", "a"}, {"max_tokens", 2}, {"logit_bias", json::object()}};
  const size_t vocabulary = json::parse(get("/v1/models").body)["data"][0]["meta"]["n_vocab"];
  for (size_t token = 0; token != vocabulary; ++token) body["logit_bias"][std::to_string(token)] = false;
  const auto answer = post("/v1/completions", body);
  EXPECT_EQ(answer.status, 400u) << answer.body;
}

TEST_F(Server, SeveralTextsOfSeveralPrompts) {
  start({"-np", "4"});
  const json one = complete({{"prompt", "The"}, {"max_tokens", 6}});
  const json answer = complete({{"prompt", {"First", "The"}}, {"n", 2}, {"max_tokens", 6}});
  ASSERT_THAT(answer["choices"], SizeIs(4));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(answer["choices"][i]["index"], i);
  EXPECT_EQ(answer["choices"][2]["text"], one["choices"][0]["text"]);
  EXPECT_EQ(answer["choices"][3]["text"], one["choices"][0]["text"]);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 24);
}

TEST_F(Server, ManyAtOnceGetWhatEachGetsAlone) {
  start({"--config", config_file("hybrid"), "--set", "tiers.dram.capacity=60%", "--fit", "-np", "4"});
  const std::vector<std::string> prompts = {"First", "The", "To be", "KING", "Away", "My lord,", "O", "And"};
  std::vector<std::string> alone;
  for (const std::string& prompt : prompts)
    alone.push_back(complete({{"prompt", prompt}, {"max_tokens", 12}})["choices"][0]["text"]);
  std::vector<std::thread> clients;
  std::vector<std::string> together(prompts.size() * 3);
  for (size_t i = 0; i < together.size(); ++i) {
    clients.emplace_back([&, i] {
      together[i] =
          complete({{"prompt", prompts[i % prompts.size()]}, {"max_tokens", 12}})["choices"][0]["text"];
    });
  }
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < together.size(); ++i) EXPECT_EQ(together[i], alone[i % prompts.size()]);
}

TEST_F(Server, WhatWasSaidBeforeIsNotComputedAgain) {
  start();
  const json first = complete({{"prompt", "First Citizen:"}, {"max_tokens", 8}});
  const std::string longer = "First Citizen:" + first["choices"][0]["text"].get<std::string>();
  EXPECT_EQ(first["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_GT(
      complete({{"prompt", longer}, {"max_tokens", 4}})["usage"]["prompt_tokens_details"]["cached_tokens"]
          .get<int>(),
      2);
}

TEST_F(Server, BadRequestsAreToldWhatIsWrongAndHurtNobody) {
  start();
  const auto status_of = [&](const std::string& body) {
    HttpClient client(port_);
    client.post("/v1/completions", body);
    return client.read();
  };
  EXPECT_EQ(status_of("").status, 400u);
  EXPECT_EQ(status_of("{").status, 400u);
  EXPECT_EQ(status_of("[]").status, 400u);
  EXPECT_EQ(status_of(R"({"prompt": "a", "prompt": "b"})").status, 400u);
  EXPECT_EQ(status_of(std::string(100'000, '[')).status, 400u);
  EXPECT_EQ(status_of("{\"prompt\": \"\xff\"}").status, 400u);
  EXPECT_THAT(error_of(status_of(R"({"prompt": "a", "temperature": "hot"})")), HasSubstr("temperature"));
  EXPECT_EQ(status_of(R"({"prompt": "a", "grammar": "root ::= x"})").status, 501u);
  const HttpAnswer too_long = post("/v1/completions", {{"prompt", std::vector<int>(300, 5)}});
  EXPECT_EQ(too_long.status, 400u);
  EXPECT_THAT(error_of(too_long), HasSubstr("300 tokens do not fit a context of 256"));
  EXPECT_EQ(post("/v1/completions", {{"prompt", "a"}, {"logit_bias", {{"999999", 1}}}}).status, 400u);
  complete({{"prompt", "a"}, {"max_tokens", 1}});
  EXPECT_EQ(end().status, 0);
}

TEST_F(Server, KeysStandInAFileToo) {
  const std::string keys = folder().path() + "/keys";
  std::ofstream(keys) << "sesame\n\nopen \n";
  start({"--api-key-file", keys});
  EXPECT_EQ(get("/props").status, 401u);
  EXPECT_EQ(get("/props", "Authorization: Bearer open\r\n").status, 200u);
  std::ofstream(keys, std::ios::trunc) << "\n";
  EXPECT_THAT(run_tierd({"-m", kDemo, "--port", "0", "--api-key-file", keys}).err, HasSubstr("has no key"));
  EXPECT_THAT(run_tierd({"-m", kDemo, "--port", "0", "--api-key", ""}).err,
              HasSubstr("would admit everybody"));
}

TEST_F(Server, AKeyIsAskedForWhereThereIsOne) {
  start({"--api-key", "sesame", "--api-key", "open"});
  EXPECT_EQ(get("/health").status, 200u);
  EXPECT_EQ(get("/props").status, 401u);
  EXPECT_EQ(get("/props", "Authorization: Bearer nonsense\r\n").status, 401u);
  EXPECT_EQ(get("/props", "Authorization: Bearer sesam\r\n").status, 401u);
  EXPECT_EQ(get("/props", "Authorization: Bearer sesame\r\n").status, 200u);
  EXPECT_EQ(get("/props", "X-Api-Key: open\r\n").status, 200u);
}

TEST_F(Server, AClientThatLeavesFreesItsPlace) {
  start({"--ignore-eos"});
  const auto processing = [&] { return json::parse(get("/slots").body)[0]["is_processing"].get<bool>(); };
  {
    HttpClient client(port_);
    client.post("/v1/completions", json{{"prompt", "a"}, {"stream", true}}.dump());
    ASSERT_FALSE(client.read_to("data: ").empty());
  }
  for (int i = 0; i < 1000 && processing(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(processing());
}

// While a text is written; and the text is the one of a run that nobody disturbs.
TEST_F(Server, ATiersCapacityMovesWhileTokensFlow) {
  start({"--ignore-eos", "--ub", "8", "--set", "cache.name=lru", "--set", "tiers.dram.capacity=60%", "--set",
         "tiers.dram.staging=256 KiB"});
  const json text = {{"prompt", "First Citizen:"}, {"max_tokens", 240}};
  const std::string whole = complete(text)["choices"][0]["text"];
  const auto tier = [&] { return json::parse(get("/v1/tiers").body)["tiers"][0]; };
  const json before = tier();
  EXPECT_EQ(before["tier"], "dram");
  const uint64_t at_60 = before["capacity_bytes"];

  json streamed = text;
  streamed["stream"] = true;
  HttpClient client(port_);
  client.post("/v1/completions", streamed.dump());
  std::string written;
  const auto take = [&](int events_to_come) {
    while (events_to_come-- > 0) written += client.read_to("\n\n");
  };
  take(20);
  const auto move = [&](const json& capacity) {
    const HttpAnswer answer = post("/v1/tiers/dram/capacity", {{"capacity", capacity}});
    EXPECT_EQ(answer.status, 200u) << answer.body;
    take(20);
    return json::parse(answer.body, nullptr, false);
  };
  const json smaller = move("30%");
  EXPECT_EQ(smaller["tier"], "dram");
  EXPECT_EQ(smaller["old_capacity_bytes"], at_60);
  const uint64_t at_30 = smaller["capacity_bytes"];
  EXPECT_NEAR(static_cast<double>(at_30), static_cast<double>(at_60) / 2, 1);
  EXPECT_LE(smaller["used_bytes"], smaller["capacity_bytes"]);
  EXPECT_EQ(tier()["capacity_bytes"], at_30);
  const uint64_t at_80 = at_60 / 3 * 4;
  EXPECT_EQ(move(at_80)["capacity_bytes"], at_80);
  const HttpAnswer refused = post("/v1/tiers/dram/capacity", {{"capacity", "1000"}});
  EXPECT_EQ(refused.status, 400u);
  EXPECT_THAT(error_of(refused), HasSubstr("tiers.dram.capacity: 1.00 kB is too little now: "));
  EXPECT_EQ(error_of(post("/v1/tiers/dram/capacity", {{"capacity", "much"}})).substr(0, 20),
            "tiers.dram.capacity:");
  EXPECT_EQ(tier()["capacity_bytes"], at_80);
  const std::string rest = client.read_to("[DONE]");
  EXPECT_FALSE(rest.empty());
  written += rest;
  std::string said;
  for (size_t at = written.find("data: {"); at != std::string::npos; at = written.find("data: {", at + 1)) {
    const json event = json::parse(written.substr(at + 6, written.find('\n', at) - at - 6));
    if (!event["choices"].empty()) said += event["choices"][0].value("text", "");
  }
  EXPECT_EQ(said, whole);
  const Ended ended = end();
  EXPECT_THAT(ended.err, HasSubstr("tiers.dram.capacity: "));
}

TEST_F(Server, WhatCannotMoveSaysSo) {
  start({"--set", "cache.name=none"});
  const HttpAnswer answer = post("/v1/tiers/dram/capacity", {{"capacity", "50%"}});
  EXPECT_EQ(answer.status, 501u);
  EXPECT_THAT(error_of(answer), HasSubstr("cache 'none'"));
}

TEST_F(Server, SigtermFinishesWhatWasBegun) {
  start({"--ignore-eos"});
  const json whole = complete({{"prompt", "First"}, {"max_tokens", 200}});
  HttpClient client(port_);
  client.post("/v1/completions", json{{"prompt", "First"}, {"max_tokens", 200}, {"stream", true}}.dump());
  const std::string mark = "data: ";
  ASSERT_FALSE(client.read_to(mark).empty());
  program_->kill(SIGTERM);
  // An event is a chunk of its own: between them stands how long they are.
  std::string rest = mark + client.read_to("[DONE]"), text;
  for (size_t at = 0; (at = rest.find(mark + "{", at)) != std::string::npos;) {
    at += mark.size();
    text += json::parse(rest.substr(at, rest.find("\n\n", at) - at))["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(text, whole["choices"][0]["text"]);
  const Ended ended = program_->wait();
  EXPECT_EQ(ended.status, 0) << ended.err;
}

TEST_F(Server, ASecondSignalEndsAtOnce) {
  start({"--ignore-eos"});
  HttpClient client(port_);
  client.post("/v1/completions", json{{"prompt", "First"}, {"n", 60}}.dump());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  program_->kill(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  program_->kill(SIGINT);
  EXPECT_EQ(program_->wait().status, 128 + SIGINT);
}

TEST_F(Server, APortThatIsTakenIsSaidBeforeAnythingIsLoaded) {
  start();
  const Ended second = run_tierd({"-m", kDemo, "--port", std::to_string(port_)});
  EXPECT_EQ(second.status, 2);
  EXPECT_THAT(second.err, HasSubstr("cannot listen"));
}

TEST_F(Server, MetricsCountWhatHappened) {
  start({"--config", config_file("hybrid"), "--set", "tiers.dram.capacity=60%", "--fit", "-np", "2"});
  const auto value = [&](const std::string& series) {
    const std::string text = get("/metrics").body;
    const size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  };
  EXPECT_EQ(value("llamacpp:tokens_predicted_total"), 0);
  complete({{"prompt", "First Citizen:"}, {"max_tokens", 8}});
  // The engine says how it is after the step that gave the last token, and the answer may be quicker.
  for (int i = 0; i < 1000 && value("tierd_texts_total") < 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(value("llamacpp:tokens_predicted_total"), 8);
  EXPECT_EQ(value("tierd_store_changed"), 0);
  EXPECT_GT(value("llamacpp:prompt_tokens_total"), 1);
  EXPECT_EQ(value("llamacpp:requests_processing"), 0);
  EXPECT_GT(value("tierd_link_bytes_total{link=\"flash\"}"), 0);
  EXPECT_GT(value("tierd_budget_bytes{tier=\"dram\"}"), 0);
  EXPECT_LE(value("tierd_used_bytes{tier=\"dram\"}"), value("tierd_budget_bytes{tier=\"dram\"}"));
  EXPECT_EQ(value("tierd_pressure_shrinks_total{tier=\"dram\"}"), 0);
  EXPECT_EQ(value("tierd_pressure_grows_total{tier=\"dram\"}"), 0);
  EXPECT_EQ(value("tierd_site_active_share{site=\"head\"}"), 1);
  EXPECT_THAT(get("/metrics").headers.at("content-type"), HasSubstr("text/plain"));
}

TEST_F(Server, VariablesOfTheEnvironmentCountWhereNoFlagDoes) {
  setenv("LLAMA_ARG_ALIAS", "by variable", 1);
  setenv("LLAMA_ARG_CTX_SIZE", "32", 1);
  start();
  unsetenv("LLAMA_ARG_ALIAS");
  unsetenv("LLAMA_ARG_CTX_SIZE");
  const json model = json::parse(get("/v1/models").body)["data"][0];
  EXPECT_EQ(model["id"], "by variable");
  EXPECT_EQ(model["meta"]["n_ctx"], 256);  // -c
}

TEST_F(Server, ALineForEachRequestAndText) {
  start({"--log-format", "json"});
  const std::string id = "X-Request-Id: my-request.7\r\n";
  EXPECT_EQ(post("/v1/completions", {{"prompt", "First"}, {"max_tokens", 3}}, id).headers.at("x-request-id"),
            "my-request.7");
  EXPECT_EQ(get("/nowhere", "X-Request-Id: other\r\n").status, 404u);
  EXPECT_EQ(get("/health").status, 200u);
  const Ended ended = end();
  json text, request, other;
  std::istringstream lines(ended.err);
  for (std::string line; std::getline(lines, line);) {
    const json object = json::parse(line);
    EXPECT_EQ(object["level"], "info");
    EXPECT_THAT(object["time"].get<std::string>(), testing::EndsWith("Z"));
    EXPECT_NE(object.value("path", ""), "/health");
    if (object.value("request", "") == "other") other = object;
    if (object.value("request", "") == "my-request.7") (object.contains("text") ? text : request) = object;
  }
  EXPECT_EQ(text["generated_tokens"], 3) << ended.err;
  EXPECT_EQ(text["ended_by"], "length");
  EXPECT_EQ(request["path"], "/v1/completions");
  EXPECT_EQ(request["status"], 200);
  EXPECT_EQ(other["status"], 404);
}

TEST_F(Server, ATraceNamesTheRequests) {
  const std::string trace = folder().path() + "/trace";
  start({"--trace", trace});
  const std::string id = "X-Request-Id: my-request.7\r\n";
  EXPECT_EQ(post("/v1/completions", {{"prompt", "First"}, {"max_tokens", 3}}, id).status, 200u);
  EXPECT_EQ(end().status, 0);
  EXPECT_THAT(Program(TIERD_BIN_TRACE, {"print", trace}).wait().out,
              HasSubstr("sequence 0 begins: my-request.7"));
}

TEST_F(Server, AKillLosesNothingButWhatWasInFlight) {
  start({"--ignore-eos"});
  const json before = complete({{"prompt", "First"}, {"max_tokens", 8}});
  HttpClient client(port_);
  client.post("/v1/completions", json{{"prompt", "a"}, {"stream", true}}.dump());
  ASSERT_FALSE(client.read_to("data: ").empty());
  program_->kill(SIGKILL);
  EXPECT_EQ(program_->wait().status, 128 + SIGKILL);
  // At the same place, whose old connection lingers.
  start_program({"-m", kDemo, "--port", std::to_string(port_), "-t", "1", "-c", "256", "--temp", "0"});
  EXPECT_EQ(complete({{"prompt", "First"}, {"max_tokens", 8}})["choices"][0]["text"],
            before["choices"][0]["text"]);
}

TEST_F(Server, AStoreThatIsReplacedIsNoticedNotMixed) {
  const std::string store = folder().path() + "/store", other = folder().path() + "/other";
  ASSERT_EQ(Program(TIERD_BIN_CONVERT, {kDemo, store, "-q"}).wait().status, 0);
  ASSERT_EQ(Program(TIERD_BIN_CONVERT, {kDemo, other, "--neuron-bytes", "4096", "-q"}).wait().status, 0);
  // Streams all of it, all the time.
  start_program({"--config", config_file("naive"), "-m", store, "--port", "0", "-t", "1", "-c", "64",
                 "--temp", "0", "--set", "tiers.dram.capacity=60%", "--fit"});
  const json body = {{"prompt", "First"}, {"max_tokens", 8}};
  const json before = complete(body);
  ASSERT_EQ(std::rename(store.c_str(), (store + ".old").c_str()), 0);
  ASSERT_EQ(std::rename(other.c_str(), store.c_str()), 0);
  EXPECT_EQ(complete(body)["choices"][0]["text"], before["choices"][0]["text"]);
  const auto noticed = [&] {
    return program_->err().find("was replaced since it was opened") != std::string::npos;
  };
  for (int i = 0; i < 1000 && !noticed(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(noticed()) << program_->err();
  EXPECT_EQ(complete(body)["choices"][0]["text"], before["choices"][0]["text"]);

  // What is written over in place fails, and the server lives.
  const std::string data = store + ".old/weights.bin";
  const uintmax_t bytes = std::filesystem::file_size(data);
  std::ofstream(data, std::ios::in | std::ios::out) << std::string(bytes, 'x');
  const HttpAnswer broken = post("/v1/completions", body);
  EXPECT_EQ(broken.status, 500u);
  EXPECT_THAT(error_of(broken), HasSubstr("checksum"));
  EXPECT_EQ(get("/health").status, 200u);
}

TEST_F(Server, AStoreServesTwo) {
  start();
  const json first = complete({{"prompt", "First"}, {"max_tokens", 8}});
  const std::unique_ptr<Program> other = std::move(program_);
  start();
  EXPECT_EQ(complete({{"prompt", "First"}, {"max_tokens", 8}})["choices"][0]["text"],
            first["choices"][0]["text"]);
}

}  // namespace
}  // namespace tierd
