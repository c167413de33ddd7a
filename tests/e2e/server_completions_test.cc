// Completions and chats of the server, whole and streamed, and their tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/server.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;

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

  // A seed gives the same text on the server and on the command line.
  const Ended lively =
      run_tierd({"-m", kDemo, "-p", "The", "-n", "16", "-t", "1", "--temp", "1", "-s", "5", "-q"});
  EXPECT_EQ(
      complete(
          {{"prompt", "The"}, {"max_tokens", 16}, {"temperature", 1}, {"seed", 5}})["choices"][0]["text"],
      lively.out);
}

// Speculation changes no text: several texts at once, a draft model or a lookup, by flags or by file.
TEST_F(Server, GuessesChangeNoText) {
  const std::vector<std::string> prompts = {"First Citizen:\nWe are, we are, we are", "The",
                                            "ROMEO:", "What, what, what"};
  const auto answers = [&](const std::vector<std::string>& arguments) {
    start(arguments);
    std::vector<json> all(prompts.size());
    std::vector<std::thread> clients;
    for (size_t i = 0; i < prompts.size(); ++i) {
      clients.emplace_back([&, i] {
        all[i] = complete({{"prompt", prompts[i]},
                           {"max_tokens", 40},
                           {"temperature", i % 2},
                           {"seed", i},
                           {"ignore_eos", true}});
      });
    }
    for (std::thread& client : clients) client.join();
    const std::string metrics = get("/metrics").body;
    EXPECT_THAT(metrics, HasSubstr("tierd_right_guesses_total"));
    EXPECT_EQ(end().status, 0);
    return all;
  };
  const std::vector<json> alone = answers({"-np", "3"});
  for (const json& answer : alone) EXPECT_FALSE(answer["timings"].contains("draft_n"));
  for (const std::vector<std::string>& way : {std::vector<std::string>{"-np", "3", "-md", kDemo},
                                              {"-np", "1", "--prompt-lookup", "--draft-max", "9"},
                                              {"-np", "3", "--set", "speculation.lookup=true"}}) {
    const std::vector<json> guessed = answers(way);
    int guesses = 0, right = 0;
    for (size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(guessed[i]["choices"][0]["text"], alone[i]["choices"][0]["text"]) << way[2] << ' ' << i;
      EXPECT_EQ(guessed[i]["timings"]["predicted_n"], 40);
      guesses += guessed[i]["timings"].value("draft_n", 0);
      right += guessed[i]["timings"].value("draft_n_accepted", 0);
    }
    EXPECT_GT(right, 0) << way[2];
    EXPECT_LE(right, guesses) << way[2];
  }
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

// llama-server's own route gives the same texts in its own form.
TEST_F(Server, LlamaServersOwnCompletions) {
  start();
  const json known = complete({{"prompt", "First Citizen:"}, {"max_tokens", 12}});
  const json body = {
      {"prompt", "First Citizen:"}, {"n_predict", 12}, {"return_tokens", true}, {"n_probs", 2}};
  for (const char* path : {"/completion", "/completions"}) {
    const json whole = json::parse(post(path, body).body);
    EXPECT_EQ(whole["content"], known["choices"][0]["text"]);
    EXPECT_EQ(whole["stop"], true);
    EXPECT_EQ(whole["stop_type"], "limit");
    EXPECT_EQ(whole["tokens_predicted"], 12);
    EXPECT_EQ(whole["tokens_evaluated"], known["usage"]["prompt_tokens"]);
    EXPECT_EQ(whole["generation_settings"]["n_predict"], 12);
    EXPECT_EQ(whole["timings"]["predicted_n"], 12);
    EXPECT_THAT(whole["tokens"], SizeIs(12));
    EXPECT_THAT(whole["completion_probabilities"], SizeIs(12));
    EXPECT_THAT(whole["completion_probabilities"][0]["top_logprobs"], SizeIs(2));
  }
  json streamed = body;
  streamed["stream"] = true;
  const std::vector<json> all = events(post("/completion", streamed).body);
  std::string text;
  for (const json& part : all) text += part["content"].get<std::string>();
  EXPECT_EQ(text, known["choices"][0]["text"]);
  EXPECT_EQ(all.front()["stop"], false);
  EXPECT_EQ(all.back()["stop"], true);
  const json several = json::parse(post("/completion", {{"prompt", {"a", "b"}}, {"n_predict", 1}}).body);
  EXPECT_THAT(several, SizeIs(2));
  const std::string stop = text.substr(4, 2);
  const json stopped =
      json::parse(post("/completion", {{"prompt", "First Citizen:"}, {"stop", {stop}}}).body);
  EXPECT_EQ(stopped["stop_type"], "word");
  EXPECT_EQ(stopped["stopping_word"], stop);
  EXPECT_EQ(stopped["content"], text.substr(0, text.find(stop)));
}

TEST_F(Server, AChatHasItsRoleOnceAndItsContentBetween) {
  EXPECT_THAT(run_tierd({"-m", kDemo, "--port", "0", "--chat-template", "no"}).err,
              HasSubstr("expected one of chatml"));
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
  EXPECT_EQ(answer.status, 400u);
  EXPECT_THAT(error_of(answer), HasSubstr("--chat-template, one of chatml"));
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
    // The token itself is listed, whatever its rank.
    const std::string token = logprobs["tokens"][i];
    EXPECT_EQ(logprobs["top_logprobs"][i].at(token), logprobs["token_logprobs"][i]);
  }
  // text_offset is where the token's text begins, in characters of the answer.
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
  EXPECT_EQ(status_of(R"({"prompt": "a", "grammar": "root ::= x"})").status, 400u);
  const HttpAnswer too_long = post("/v1/completions", {{"prompt", std::vector<int>(300, 5)}});
  EXPECT_EQ(too_long.status, 400u);
  EXPECT_THAT(error_of(too_long), HasSubstr("(300 tokens) exceeds the available context size (256 tokens)"));
  EXPECT_EQ(post("/v1/completions", {{"prompt", "a"}, {"logit_bias", {{"999999", 1}}}}).status, 400u);
  complete({{"prompt", "a"}, {"max_tokens", 1}});
  EXPECT_EQ(end().status, 0);
}

}  // namespace
}  // namespace tierd
