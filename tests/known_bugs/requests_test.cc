// Requests of kinds that have crashed servers, or were answered otherwise than they asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/base/json_fields.h"
#include "tests/sanitized.h"
#include "tests/store/memory_source.h"
#include "tests/tierd/api_world.h"
#include "tools/tierd/server/api/api_error.h"
#include "tools/tierd/server/api/chat_request.h"
#include "tools/tierd/server/api/completion_request.h"
#include "tools/tierd/server/api/generation.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;

unsigned status_of(const json& fields) {
  static const auto tokenizer = make_tokenizer(small_vocab(300), "test");
  json body = {{"prompt", "a"}};
  body.update(fields);
  const auto request = read_completion(body, **tokenizer, {}, BodyForm::completion);
  if (request.ok()) return 200;
  EXPECT_THAT(request.error().line(), HasSubstr(fields.begin().key()));
  return api_error(request.error()).status;
}

// A negative count moved the KV cache in the wrong direction.
TEST(KnownBugs, CountsBelowZero_CVE_2026_21869) {
  for (const char* field : {"n_discard", "n_keep"}) EXPECT_NE(status_of({{field, -5}}), 500u) << field;
  for (const char* field : {"n", "logprobs", "top_k", "max_tokens", "repeat_last_n"})
    EXPECT_EQ(status_of({{field, -5}}), 400u) << field;
  for (const json& token : {json(-1), json(1 << 30), json(0.5)})
    EXPECT_EQ(status_of({{"prompt", {token}}}), 400u) << token;
  EXPECT_EQ(status_of({{"max_tokens", 1e300}}), 400u);
}

TEST(KnownBugs, NestedBodies_26600_27434_25308) {
  for (const std::string open : {"[", "{\"a\":", "[[{\"b\":"}) {
    std::string text = "{\"prompt\": ";
    for (int i = 0; i < 100'000; ++i) text += open;
    const auto body = parse_json(text, kRequest);
    ASSERT_FALSE(body.ok());
    EXPECT_EQ(api_error(body.error()).status, 400u);
  }
}

// A grammar that cannot be enforced must be refused: the client would trust that the answer follows it.
TEST(KnownBugs, GrammarsThatFailOpen_19051) {
  for (const char* field : {"grammar", "json_schema", "guided_json", "guided_regex"})
    EXPECT_EQ(status_of({{field, "root ::= x"}}), 400u) << field;
  EXPECT_EQ(status_of({{"response_format", {{"type", "json_object"}}}}), 400u);
  EXPECT_EQ(status_of({{"response_format", {{"type", "text"}}}}), 200u);
}

// Clients detect a prompt that does not fit by llama-server's words and numbers, and fall back.
TEST(KnownBugs, ContextOverflow_litellm_10793_textgen_7257) {
  const auto tokenizer = make_tokenizer(small_vocab(300), "test");
  CompletionDefaults defaults;
  defaults.context = 64;
  const json body = {{"prompt", std::vector<int>(100, 5)}};
  const auto request = read_completion(body, **tokenizer, defaults, BodyForm::completion);
  ASSERT_TRUE(request.ok() && request->too_long);
  EXPECT_FALSE(request->too_long->at_least);
  const ApiError error = overflow_error(request->too_long->tokens, false, 64, "prompt");
  const json answer = json::parse(error.body())["error"];
  EXPECT_EQ(error.status, 400u);
  EXPECT_EQ(answer["type"], "exceed_context_size_error");
  EXPECT_EQ(answer["n_prompt_tokens"], 100);
  EXPECT_EQ(answer["n_ctx"], 64);
  EXPECT_THAT(answer["message"].get<std::string>(), HasSubstr("exceeds the available context size"));
}

// Clients repeat a request after 501 for seconds, so an unsupported field is answered 400 and named.
TEST(KnownBugs, UnsupportedIsTriedAgain_openai_python) {
  const auto refused = api_error(Error{Code::unsupported, "chat template", "the model has none"});
  EXPECT_EQ(refused.status, 400u);
  EXPECT_EQ(status_of({{"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}}}), 400u);
}

// Fields that change the text and were ignored elsewhere.
TEST(KnownBugs, FieldsIgnoredInSilence_mlx_vlm_1044) {
  for (const json& field : {json{{"truncate_prompt_tokens", 2}},
                            {{"add_special_tokens", false}},
                            {{"skip_special_tokens", false}},
                            {{"include_stop_str_in_output", true}},
                            {{"length_penalty", 2.0}},
                            {{"reasoning_format", "deepseek"}},
                            {{"thinking", {{"type", "enabled"}, {"budget_tokens", 1024}}}},
                            {{"thinking_budget_tokens", 5}},
                            {{"no_such_field", 1}},
                            {{"json_schema", json::object()}},
                            {{"max_new_tokens", 1}}})
    EXPECT_EQ(status_of(field), 400u) << field;
}

// An assistant message with only tool calls has null content, and clients send it back.
TEST(KnownBugs, NullContentOfAnAssistant_lmstudio_261) {
  const auto form = ChatTemplate::named("chatml", small_vocab(300));
  const json body = {{"messages",
                      {{{"role", "user"}, {"content", "x"}},
                       {{"role", "assistant"}, {"content", nullptr}, {"refusal", nullptr}},
                       {{"role", "tool"}, {"content", "x"}},
                       {{"role", "user"}, {"content", "x"}}}},
                     {"max_tokens", 1}};
  const auto text = read_chat(body, *form);
  EXPECT_TRUE(text.ok()) << text.error().line();
}

// The text of a generation whose model yields `tokens`, and why it ended.
struct Said {
  std::string text;
  EndEvent::Why why = EndEvent::Why::failed;
  std::string stop;
};
Said said_of(const Tokenizer& tokenizer, const std::vector<uint32_t>& tokens,
             const GenerationOptions& options) {
  Said said;
  const auto told = [&](const GenerationEvent& event) {
    if (const auto* token = std::get_if<TokenEvent>(&event)) said.text += token->text;
    if (const auto* end = std::get_if<EndEvent>(&event)) said = {said.text + end->text, end->why, end->stop};
  };
  const auto prompt = std::make_shared<const std::vector<uint32_t>>(1, tokenizer.vocab().bos);
  const auto generation =
      Generation::create(tokenizer, prompt, std::make_shared<const GenerationOptions>(options), 0, told);
  EXPECT_TRUE(generation.ok()) << generation.error().line();
  for (const uint32_t token : tokens) {
    std::vector<float> logits(tokenizer.vocab().pieces.size());
    logits[token] = 100;
    const auto next = (*generation)->next(logits);
    EXPECT_TRUE(next.ok()) << next.error().line();
    if (!*next) break;
  }
  (*generation)->ended(TextEnd::finished, {});
  return said;
}

// A control token has no visible text, so a stop string that names one was never found.
TEST(KnownBugs, StopsThatNameControlTokens_tinker_feedback_90) {
  Vocab vocab = byte_vocab();
  const auto eot = static_cast<uint32_t>(vocab.pieces.size());
  vocab.pieces.push_back("<|eot|>");
  vocab.scores.push_back(0);
  vocab.types.push_back(TokenType::control);
  const auto tokenizer = make_tokenizer(vocab, "test");
  const auto byte = [](char c) { return static_cast<uint32_t>(3 + c); };
  using Why = EndEvent::Why;
  const struct {
    std::vector<std::string> stops;
    std::vector<uint32_t> tokens;
    std::string text;
    Why why;
    std::string stop;
    bool ignore_eos = false;
    bool special = false;
  } cases[] = {
      {{"<|eot|>"}, {byte('h'), eot, byte('u')}, "h", Why::stop_string, "<|eot|>"},
      {{"<|eot|>"}, {byte('h'), eot, byte('u')}, "h", Why::stop_string, "<|eot|>", false, true},
      {{"<|eot|>"}, {eot}, "", Why::stop_string, "<|eot|>"},
      {{"x", "<|eot|>", "u"}, {byte('h'), eot, byte('u')}, "h", Why::stop_string, "<|eot|>"},
      {{"x", "<|eot|>", "h"}, {byte('h'), eot, byte('u')}, "", Why::stop_string, "h"},
      {{"i<|eot|>"}, {byte('h'), byte('i'), eot, byte('u')}, "h", Why::stop_string, "i<|eot|>"},
      {{"<|eot|>u"}, {byte('h'), eot, byte('u'), byte('o')}, "h", Why::stop_string, "<|eot|>u"},
      {{"<|eot|></s>"}, {byte('h'), eot, 2}, "h", Why::stop_string, "<|eot|></s>"},
      {{"</s>"}, {byte('h'), 2}, "h", Why::stop_string, "</s>"},
      {{"</s>"}, {byte('h'), 2, byte('u')}, "h", Why::stop_string, "</s>", true},
      {{"h</s>"}, {byte('h'), 2}, "", Why::stop_string, "h</s>"},
      {{"hu"}, {byte('h'), eot, byte('u')}, "", Why::stop_string, "hu"},
      {{"<|eot|>x", "ux"}, {byte('h'), eot, byte('u'), 2}, "hu", Why::end_token, ""},
      {{}, {byte('h'), eot, byte('u'), 2}, "hu", Why::end_token, ""},
  };
  for (const auto& [stops, tokens, text, why, stop, ignore_eos, special] : cases) {
    GenerationOptions options;
    options.sampling.temperature = 0;
    options.stops = stops;
    options.ignore_eos = ignore_eos;
    options.special = special;
    const Said said = said_of(**tokenizer, tokens, options);
    EXPECT_EQ(said.text, text) << testing::PrintToString(stops);
    EXPECT_EQ(said.why, why) << testing::PrintToString(stops);
    EXPECT_EQ(said.stop, stop);
  }
}

// Returns the peak growth of resident memory during `work` in bytes; 0 under sanitizers, which retain much.
uint64_t peak_growth(const std::function<void()>& work) {
  const auto status = [](const std::string& key) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(key)) return std::stoull(line.substr(key.size() + 1)) << 10;
    }
    return 0ull;
  };
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
  const uint64_t before = status("VmRSS");
  work();
  const uint64_t peak = status("VmHWM");
  return kSanitized || peak < before ? 0 : peak - before;
}

// An Api whose model has a token for each byte, and which never answers a request that it has accepted.
class RequestMemory : public testing::Test {
 protected:
  static constexpr uint32_t kContext = 131'072;

  RequestMemory() : tokenizer_(std::move(*make_tokenizer(byte_vocab(), "test"))) {
    Api::Options options{{}, {}, {}, {}, Error{Code::unsupported, "chat", "none"}, {}, true};
    options.model.context = options.defaults.context = kContext;
    api_ = std::make_unique<Api>(std::move(options), *tokenizer_, desk_);
    api_->set_server(server_, reading_);
  }
  // Keeps an accepted request in memory.
  std::shared_ptr<HeardReply> post(const std::string& path, const std::string& body) {
    HttpRequest request;
    request.method = "POST";
    request.path = path;
    request.body = body;
    auto reply = std::make_shared<HeardReply>();
    const size_t before = accepted_.size();
    api_->handle(std::move(request), reply);
    server_.wait_until([&] {
      std::ranges::move(desk_.take(), std::back_inserter(accepted_));
      return reply->status != 0 || accepted_.size() != before;
    });
    return reply;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  WorkDesk desk_{128};
  PostedWork server_;
  std::vector<WorkDesk::Work> accepted_;
  std::unique_ptr<Api> api_;
  ReadingThread reading_{4};
};

// Clients of llama-server use its own routes, which were missing.
TEST_F(RequestMemory, RoutesOfLlamaServerAreThere) {
  for (const char* path : {"/completion", "/completions", "/v1/completions", "/chat/completions",
                           "/v1/chat/completions", "/tokenize", "/detokenize", "/apply-template"}) {
    HttpRequest head;
    head.method = "POST";
    head.path = path;
    HeardReply reply;
    (void)api_->admit(head, reply);
    EXPECT_NE(reply.status, 404u) << path;
  }
}

// Two texts of a bias, with a copy of their tokens for each of 64 texts: 240 kB of body killed a server.
TEST_F(RequestMemory, ABiasIsBoundedAndShared) {
  for (const size_t bytes : {60'000, 190'000}) {
    const json body = {{"prompt", "a"},
                       {"n", 64},
                       {"logit_bias", json::array({json::array({std::string(bytes, 'y'), 1}),
                                                   json::array({std::string(bytes, 'z'), 1})})}};
    std::shared_ptr<HeardReply> reply;
    EXPECT_LT(peak_growth([&] { reply = post("/v1/completions", body.dump()); }), 8u << 20);
    EXPECT_EQ(reply->status, 400u);
    EXPECT_EQ(reply->body["error"]["param"], "logit_bias");
  }
  json many = {{"prompt", "a"}, {"n", 64}, {"logit_bias", json::array()}};
  for (int i = 0; i < 40; ++i) many["logit_bias"].push_back({std::string(4000, 'y'), 1});
  const auto reply = post("/v1/completions", many.dump());
  EXPECT_EQ(reply->status, 400u);
  EXPECT_EQ(reply->body["error"]["param"], "logit_bias");
}

TEST_F(RequestMemory, StopStringsAreCounted) {
  const json body = {
      {"prompt", "a"}, {"n", 64}, {"stop", std::vector<std::string>(64, std::string(4000, 'y'))}};
  EXPECT_LT(peak_growth([&] { (void)post("/v1/completions", body.dump()); }), 24u << 20);
  EXPECT_EQ(accepted_.size(), 1u);
  EXPECT_EQ(post("/v1/completions", body.dump())->status, 503u) << "together they are too many";
}

TEST_F(RequestMemory, APromptIsShared) {
  const json body = {{"prompt", std::string(kContext - 1, 'y')}, {"n", 64}};
  EXPECT_LT(peak_growth([&] { (void)post("/v1/completions", body.dump()); }), 40u << 20);
  EXPECT_EQ(accepted_.size(), 1u);
}

// Each text counts tokens for its penalties, which cannot be shared, so their sum is bounded.
TEST_F(RequestMemory, TextsThatTakeMuchAreFewer) {
  json body = {
      {"prompt", std::string(kContext - 1, 'y')}, {"n", 64}, {"repeat_last_n", -1}, {"repeat_penalty", 1.5}};
  const auto reply = post("/v1/completions", body.dump());
  EXPECT_EQ(reply->status, 400u);
  EXPECT_EQ(reply->body["error"]["param"], "n");
  body["n"] = 1;
  (void)post("/v1/completions", body.dump());
  EXPECT_EQ(accepted_.size(), 1u);
  body["n"] = 2;
  (void)post("/v1/completions", body.dump());
  EXPECT_EQ(accepted_.size(), 2u);
  EXPECT_EQ(post("/v1/completions", body.dump())->status, 503u) << "more than all may take together";
  accepted_.clear();
  (void)post("/v1/completions", body.dump());
  EXPECT_EQ(accepted_.size(), 1u) << "what is answered gives its room back";
}

TEST_F(RequestMemory, PiecesAreWrittenOneByOne) {
  const json body = {{"content", std::string(250'000, 'y')}, {"with_pieces", true}};
  std::shared_ptr<HeardReply> reply;
  EXPECT_LT(peak_growth([&] { reply = post("/tokenize", body.dump()); }), 64u << 20);
  EXPECT_EQ(reply->status, 200u);
  EXPECT_EQ(std::ranges::count(reply->text, '{'), 250'001);
  EXPECT_THAT(reply->text, testing::EndsWith(R"({"id":124,"piece":"y"}]})"));
}

TEST_F(RequestMemory, KeysAreBounded) {
  std::string body = "{\"prompt\":\"a\"";
  for (int i = 0; i < 400'000; ++i) body += ",\"" + std::to_string(i) + "\":1";
  std::shared_ptr<HeardReply> reply;
  EXPECT_LT(peak_growth([&] { reply = post("/v1/completions", body + "}"); }), 24u << 20);
  EXPECT_EQ(reply->status, 400u);
  EXPECT_EQ(reply->body["error"]["message"], "request body: JSON of more than 135427 keys");
}

TEST_F(RequestMemory, WhatCannotFitIsNotTokenized) {
  for (const char* path : {"/v1/completions", "/tokenize"}) {
    const std::string text(4'400'000, 'y');
    const json body = path == std::string("/tokenize") ? json{{"content", text}} : json{{"prompt", text}};
    std::shared_ptr<HeardReply> reply;
    EXPECT_LT(peak_growth([&] { reply = post(path, body.dump()); }), 40u << 20) << path;
    EXPECT_EQ(reply->status, 400u) << path;
  }
}

}  // namespace
}  // namespace tierd
