#include "tools/tierd/server/api/completion_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/text/chat_template.h"
#include "tests/store/memory_source.h"
#include "tests/tierd/api_world.h"
#include "tools/tierd/server/api/api_error.h"
#include "tools/tierd/server/api/chat_request.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

class CompletionRequestTest : public testing::Test {
 protected:
  CompletionRequestTest() : tokenizer_(std::move(*make_tokenizer(small_vocab(300), "test"))) {
    defaults_.generation.sampling.temperature = 0.5f;
    defaults_.generation.stops = {"default"};
  }
  Result<CompletionRequest> read(const json& body) {
    return read_completion(body, *tokenizer_, defaults_, BodyForm::completion);
  }
  Result<CompletionRequest> read_chats(const json& body) {
    const auto chat = ChatTemplate::named("chatml", tokenizer_->vocab());
    return read_completion(body, *tokenizer_, defaults_, BodyForm::chat, &*chat);
  }
  std::string refused(const json& fields) {
    json body = {{"prompt", "a"}};
    body.update(fields);
    const auto request = read(body);
    return request.ok() ? "accepted" : request.error().line();
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  CompletionDefaults defaults_;
};

TEST_F(CompletionRequestTest, WhatIsNotSaidIsAsTheServerWasStarted) {
  const auto request = read({{"prompt", "a"}, {"temperature", nullptr}});
  ASSERT_TRUE(request.ok()) << request.error().line();
  EXPECT_EQ(request->generation.sampling.temperature, 0.5f);
  EXPECT_EQ(request->generation.stops, defaults_.generation.stops);
  EXPECT_EQ(read({{"prompt", "a"}, {"stop", json::array()}})->generation.stops, defaults_.generation.stops);
  EXPECT_EQ(request->generation.most_tokens, UINT64_MAX);
  EXPECT_TRUE(request->random_seed);
  EXPECT_EQ(request->n, 1u);
  EXPECT_FALSE(request->stream);
}

TEST_F(CompletionRequestTest, EveryFieldIsTaken) {
  const auto request = read({{"prompt", "a"},
                             {"temperature", 0},
                             {"top_k", 3},
                             {"top_p", 0.5},
                             {"min_p", 0.25},
                             {"typical_p", 0.75},
                             {"top_n_sigma", 2},
                             {"xtc_probability", 0.5},
                             {"xtc_threshold", 0.25},
                             {"repeat_last_n", -1},
                             {"repeat_penalty", 1.5},
                             {"presence_penalty", 0.5},
                             {"frequency_penalty", -0.5},
                             {"seed", 7},
                             {"max_tokens", 12},
                             {"stop", {"x", "y"}},
                             {"stream", true},
                             {"stream_options", {{"include_usage", true}}},
                             {"n", 3},
                             {"echo", true},
                             {"logprobs", 2},
                             {"ignore_eos", true},
                             {"return_progress", true},
                             {"timings_per_token", true},
                             {"user", "somebody"},
                             {"model", "any"}});
  ASSERT_TRUE(request.ok()) << request.error().line();
  const SamplerOptions& sampling = request->generation.sampling;
  EXPECT_EQ(sampling.temperature, 0);
  EXPECT_EQ(sampling.top_k, 3u);
  EXPECT_EQ(sampling.top_p, 0.5f);
  EXPECT_EQ(sampling.min_p, 0.25f);
  EXPECT_EQ(sampling.typical_p, 0.75f);
  EXPECT_EQ(sampling.top_n_sigma, 2);
  EXPECT_EQ(sampling.xtc_probability, 0.5f);
  EXPECT_EQ(sampling.xtc_threshold, 0.25f);
  EXPECT_EQ(sampling.penalties.repeat_last_n, -1);
  EXPECT_EQ(sampling.penalties.repeat_penalty, 1.5f);
  EXPECT_EQ(sampling.penalties.presence_penalty, 0.5f);
  EXPECT_EQ(sampling.penalties.frequency_penalty, -0.5f);
  EXPECT_EQ(sampling.seed, 7u);
  EXPECT_FALSE(request->random_seed);
  EXPECT_EQ(request->generation.most_tokens, 12u);
  EXPECT_THAT(request->generation.stops, ElementsAre("x", "y"));
  EXPECT_TRUE(request->generation.ignore_eos);
  EXPECT_EQ(request->generation.logprobs, 2u);
  EXPECT_TRUE(request->generation.prompt_logprobs);
  EXPECT_TRUE(request->stream && request->include_usage && request->echo);
  EXPECT_TRUE(request->return_progress && request->timings_per_token);
  EXPECT_EQ(request->n, 3u);
}

TEST_F(CompletionRequestTest, APromptIsATextTokensOrSeveralOfEither) {
  EXPECT_THAT(read({{"prompt", {5, 6, 7}}})->prompts, ElementsAre(ElementsAre(5, 6, 7)));
  EXPECT_THAT(read({{"prompt", {{5, 6}, {7}}}})->prompts, ElementsAre(ElementsAre(5, 6), ElementsAre(7)));
  EXPECT_THAT(read({{"prompt", {"a", "b"}}})->prompts, SizeIs(2));
  EXPECT_EQ(read({{"prompt", "a"}})->prompts[0], tokenizer_->encode("a", true, true));
  EXPECT_THAT(read({{"prompt", ""}})->prompts[0], ElementsAre(tokenizer_->vocab().bos));
  EXPECT_THAT(read({{"prompt", json::array()}})->prompts[0], ElementsAre(tokenizer_->vocab().bos));
  EXPECT_THAT(read(json::object()).error().line(), HasSubstr("prompt: is missing"));
  EXPECT_THAT(read({{"prompt", 5}}).error().line(), HasSubstr("prompt: expected a string"));
  EXPECT_THAT(read({{"prompt", {5, -1}}}).error().line(), HasSubstr("prompt: -1 is not a token"));
  EXPECT_THAT(read({{"prompt", {300}}}).error().line(), HasSubstr("prompt: 300 is not a token"));
  EXPECT_THAT(read({{"prompt", {"a", 5}}}).error().line(), HasSubstr("prompt: expected"));
  EXPECT_THAT(read(json::array()).error().line(), HasSubstr("expected an object"));
}

TEST_F(CompletionRequestTest, BiasInEitherForm) {
  EXPECT_THAT(
      read({{"prompt", "a"}, {"logit_bias", {{"5", 1.5}, {"17", -100}}}})->generation.sampling.logit_bias,
      testing::UnorderedElementsAre(Pair(5u, 1.5f), Pair(17u, -100.f)));
  const auto pairs = read({{"prompt", "a"}, {"logit_bias", json::parse("[[5, 1], [6, false]]")}});
  ASSERT_TRUE(pairs.ok()) << pairs.error().line();
  EXPECT_THAT(pairs->generation.sampling.logit_bias, ElementsAre(Pair(5u, 1.f), Pair(6u, -INFINITY)));
  EXPECT_THAT(refused({{"logit_bias", {{"x", 1}}}}), HasSubstr("logit_bias: \"x\" is not a token"));
  EXPECT_THAT(refused({{"logit_bias", {{"99999999999", 1}}}}), HasSubstr("is not a token"));
  EXPECT_THAT(refused({{"logit_bias", {{"5", "much"}}}}), HasSubstr("expected a number or false"));
  EXPECT_THAT(refused({{"logit_bias", 5}}), HasSubstr("expected an object or a list of pairs"));
  EXPECT_THAT(refused({{"logit_bias", json::parse("[[5]]")}}), HasSubstr("expected pairs"));
}

TEST_F(CompletionRequestTest, WrongFieldsAreNamed) {
  EXPECT_THAT(refused({{"temperature", "hot"}}), HasSubstr("temperature: found \"hot\", expected a number"));
  EXPECT_THAT(refused({{"temperature", -1}}), HasSubstr("temperature: -1 found"));
  EXPECT_THAT(refused({{"top_p", 2}}), HasSubstr("top_p: 2 found"));
  EXPECT_THAT(refused({{"top_k", -3}}), HasSubstr("top_k: found -3, expected a whole number from -1"));
  EXPECT_THAT(refused({{"max_tokens", 1.5}}), HasSubstr("max_tokens: found 1.5"));
  EXPECT_THAT(refused({{"max_tokens", 1e30}}), HasSubstr("max_tokens: found 1e+30"));
  EXPECT_THAT(refused({{"max_tokens", UINT64_MAX}}), HasSubstr("max_tokens: found 18446744073709551615"));
  EXPECT_THAT(refused({{"n", 0}}), HasSubstr("n: found 0"));
  EXPECT_THAT(refused({{"n", 65}}), HasSubstr("n: found 65"));
  EXPECT_THAT(refused({{"prompt", json::array({"a", "b"})}, {"n", 40}}),
              HasSubstr("n: 80 texts are requested"));
  EXPECT_THAT(refused({{"best_of", 5}}), HasSubstr("best_of: only the value of n is supported"));
  EXPECT_THAT(refused({{"stop", 5}}), HasSubstr("stop: expected a string"));
  EXPECT_THAT(refused({{"stop", json(std::vector<std::string>(65, "a"))}}), HasSubstr("stop: more than 64"));
  EXPECT_THAT(refused({{"logprobs", 21}}),
              HasSubstr("logprobs: found 21, expected a whole number from 0 to 20"));
  EXPECT_THAT(refused({{"stream", "yes"}}), HasSubstr("stream: found \"yes\", expected true or false"));
  EXPECT_THAT(refused({{"stream_options", 1}}), HasSubstr("stream_options"));
  EXPECT_THAT(refused({{"seed", "x"}}), HasSubstr("seed: found"));
}

// Ignoring a grammar would be worse than an error.
TEST_F(CompletionRequestTest, WhatCannotBeDoneIsRefusedAndNotIgnored) {
  for (const json& fields :
       {json{{"grammar", "root ::= x"}}, json{{"json_schema", {{"type", "object"}}}},
        json{{"tools", {{{"type", "function"}}}}}, json{{"response_format", {{"type", "json_object"}}}},
        json{{"suffix", "x"}}, json{{"mirostat", 2}}, json{{"dry_multiplier", 0.8}},
        json{{"stop_token_ids", {2}}}, json{{"min_tokens", 4}}, json{{"guided_json", {{"type", "object"}}}},
        json{{"add_generation_prompt", false}}, json{{"chat_template_kwargs", {{"enable_thinking", false}}}},
        json{{"repetition_penalty", 1.1}}}) {
    json body = {{"prompt", "a"}};
    body.update(fields);
    const auto request = read(body);
    ASSERT_FALSE(request.ok()) << fields;
    const ApiError error = api_error(request.error());
    EXPECT_EQ(error.status, 400u) << error.message;
    EXPECT_EQ(error.param, fields.begin().key()) << error.message;
  }
  // Fields with a neutral value are accepted.
  for (const json& fields : {json{{"grammar", ""}}, json{{"tools", json::array()}}, json{{"mirostat", 0}},
                             json{{"response_format", {{"type", "text"}}}}, json{{"suffix", nullptr}},
                             json{{"dry_multiplier", 0.0}}, json{{"add_generation_prompt", true}},
                             json{{"repetition_penalty", 1.0}}}) {
    json body = {{"prompt", "a"}};
    body.update(fields);
    EXPECT_TRUE(read(body).ok()) << fields;
  }
}

TEST_F(CompletionRequestTest, ChatsAreWrittenInTheirForm) {
  const auto form = ChatTemplate::named("chatml", tokenizer_->vocab());
  EXPECT_EQ(
      *read_chat({{"messages",
                   {{{"role", "developer"}, {"content", "S"}},
                    {{"role", "user"},
                     {"content", {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}}}}}}},
                 *form),
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nab<|im_end|>\n<|im_start|>assistant\n");
  const auto request = read_chats(
      {{"messages", {{{"role", "user"}, {"content", "a"}}}}, {"logprobs", true}, {"top_logprobs", 3}});
  ASSERT_TRUE(request.ok()) << request.error().line();
  EXPECT_EQ(request->generation.logprobs, 3u);
  EXPECT_FALSE(request->generation.prompt_logprobs);
  const auto refused_chat = [&](const json& body) {
    const Error error = read_chats(body).error();
    EXPECT_EQ(error.origin, kRequest) << "else it were the server's fault: " << error.line();
    return error.line();
  };
  EXPECT_THAT(refused_chat(json::object()), HasSubstr("messages: expected a list"));
  EXPECT_THAT(refused_chat({{"messages", {5}}}), HasSubstr("messages[0]"));
  EXPECT_THAT(refused_chat({{"messages", {{{"content", "a"}}}}}), HasSubstr("messages[0].role: is missing"));
  EXPECT_THAT(refused_chat({{"messages", {{{"role", "user"}}}}}),
              HasSubstr("messages[0].content: is missing"));
  EXPECT_THAT(refused_chat({{"messages", {{{"role", "user"}, {"content", {{{"type", "image_url"}}}}}}}}),
              HasSubstr("messages[0].content: only text is supported"));
  EXPECT_THAT(refused_chat({{"messages", {{{"role", "user"}, {"content", json::parse(R"(["a"])")}}}}}),
              HasSubstr(R"(messages[0].content: found "a", expected an object)"));
  EXPECT_THAT(refused_chat({{"messages", {{{"role", "user"}, {"content", "a"}}}}, {"top_logprobs", 3}}),
              HasSubstr("requires logprobs = true"));
}

// An assistant's message that only called tools has the content null.
TEST_F(CompletionRequestTest, TheAssistantMayHaveSaidNothing) {
  const auto form = ChatTemplate::named("chatml", tokenizer_->vocab());
  json body = {{"messages",
                {{{"role", "user"}, {"content", "x"}},
                 {{"role", "assistant"}, {"content", nullptr}, {"refusal", nullptr}},
                 {{"role", "user"}, {"content", "x"}, {"name", "me"}}}}};
  EXPECT_EQ(
      *read_chat(body, *form),
      "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n<|im_start|>user\nx<|im_end|>\n"
      "<|im_start|>assistant\n");
  body["messages"][1]["tool_calls"] = {{{"id", "1"}}};
  EXPECT_THAT(read_chat(body, *form).error().line(), HasSubstr("messages[1].tool_calls: is not supported"));
  body["messages"][1].erase("tool_calls");
  body["messages"][1]["mood"] = "glad";
  EXPECT_THAT(read_chat(body, *form).error().line(),
              HasSubstr("messages[1].mood: is not a field of a message"));
}

// The expected texts are those of the families' templates.
TEST_F(CompletionRequestTest, ToolsHaveTurnsWhereTheFamilyHasThem) {
  const json body = {{"messages",
                      {{{"role", "user"}, {"content", "x"}},
                       {{"role", "tool"}, {"tool_call_id", "1"}, {"content", "A"}},
                       {{"role", "tool"}, {"tool_call_id", "2"}, {"content", "B"}}}}};
  const auto text = [&](const char* family) {
    const auto written = read_chat(body, *ChatTemplate::named(family, tokenizer_->vocab()));
    return written.ok() ? *written : written.error().line();
  };
  EXPECT_EQ(text("chatml"),
            "<|im_start|>user\nx<|im_end|>\n<|im_start|>tool\nA<|im_end|>\n<|im_start|>tool\nB<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(text("qwen3"),
            "<|im_start|>user\nx<|im_end|>\n<|im_start|>user\n<tool_response>\nA\n</tool_response>\n"
            "<tool_response>\nB\n</tool_response><|im_end|>\n<|im_start|>assistant\n");
  EXPECT_THAT(text("vicuna"), HasSubstr("a message of the role 'tool' is not supported"));
}

TEST_F(CompletionRequestTest, TheAssistantsLastMessageIsContinued) {
  json body = {
      {"messages", {{{"role", "user"}, {"content", "x"}}, {{"role", "assistant"}, {"content", "Sure, "}}}}};
  const auto text = [&](const char* family) {
    return *read_chat(body, *ChatTemplate::named(family, tokenizer_->vocab()));
  };
  EXPECT_EQ(text("chatml"), "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\nSure, ");
  EXPECT_EQ(text("vicuna"), "USER: x\nASSISTANT:Sure, ");
  body["continue_final_message"] = true;
  body["add_generation_prompt"] = false;
  EXPECT_EQ(text("chatml"), "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\nSure, ");
  body["continue_final_message"] = false;
  body["add_generation_prompt"] = true;
  EXPECT_TRUE(text("chatml").ends_with("Sure, <|im_end|>\n<|im_start|>assistant\n"));
  const auto refused = [&](json fields) {
    const json first = {{"messages", {{{"role", "user"}, {"content", "x"}}}}};
    fields.update(first);
    const auto read = read_chats(fields);
    return read.ok() ? "accepted" : read.error().line();
  };
  EXPECT_THAT(refused({{"continue_final_message", true}}),
              HasSubstr("continue_final_message: true requires that the last message"));
  EXPECT_THAT(refused({{"add_generation_prompt", false}}), HasSubstr("add_generation_prompt: false is"));
}

// Each known field has a neutral value; no field is ignored.
TEST_F(CompletionRequestTest, FieldsAreKnownNeutralOrRefused) {
  for (const json& fields :
       {json{{"tools", json::array()}}, json{{"n_probs", 0}}, json{{"response_format", {{"type", "text"}}}},
        json{{"no_such_field", nullptr}}, json{{"metadata", {{"a", "b"}}}}, json{{"store", true}},
        json{{"n_keep", -1}}, json{{"id_slot", 0}}, json{{"cache_prompt", false}}, json{{"dry_base", 1.75}},
        json{{"tool_choice", "auto"}}, json{{"logprobs", false}}, json{{"t_max_predict_ms", -1}},
        json{{"stream_options", {{"include_usage", true}, {"include_obfuscation", false}}}},
        json{{"reasoning_format", "none"}}, json{{"top_logprobs", 0}}}) {
    EXPECT_EQ(refused(fields), "accepted") << fields;
  }
  for (const json& fields :
       {json{{"no_such_field", false}}, json{{"messages", {1}}}, json{{"top_logprobs", 2}},
        json{{"tool_choice", "required"}}, json{{"reasoning_effort", "low"}}, json{{"content", "x"}},
        json{{"stream_options", {{"all", true}}}}, json{{"model", 5}}, json{{"return_tokens", true}}}) {
    EXPECT_THAT(refused(fields), HasSubstr(fields.begin().key())) << fields;
  }
  EXPECT_EQ(read({{"prompt", "a"}, {"n_probs", 0}})->generation.logprobs, std::nullopt);
  EXPECT_EQ(read({{"prompt", "a"}, {"n_probs", 3}})->generation.logprobs, 3u);
  EXPECT_EQ(read({{"prompt", "a"}, {"n_cmpl", 3}})->n, 3u);
  EXPECT_THAT(refused({{"max_tokens", 3}, {"n_predict", 4}}),
              HasSubstr("max_tokens: differs from n_predict"));
}

TEST(TokenBound, NeverExceedsTheTokens) {
  for (const Vocab& vocab : {byte_vocab(), small_vocab(300)}) {
    const auto tokenizer = make_tokenizer(vocab, "test");
    const TokenBound bound(**tokenizer);
    Random random(7);
    for (int i = 0; i < 200; ++i) {
      std::string text;
      for (uint64_t words = random.below(20); words-- > 0;) {
        text += random.below(2) == 0 ? vocab.pieces[random.below(vocab.pieces.size())]
                                     : std::string(1 + random.below(9), static_cast<char>(random.below(256)));
      }
      EXPECT_LE(bound.least_tokens(text), (*tokenizer)->encode(text, false, true).size()) << text;
    }
  }
  const auto bytes = make_tokenizer(byte_vocab(), "test");
  EXPECT_EQ(TokenBound(**bytes).least_tokens(std::string(1000, 'y')), 999u);
}

}  // namespace
}  // namespace tierd
