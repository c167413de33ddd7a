// Sends five hundred bodies with random fields, types, values and names. The server does what the fields say,
// or answers 400 and names a wrong field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/e2e/server.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr int kCases = kSanitized ? 100 : 500;
constexpr size_t kMostTokens = 6;
const std::string kPrompt = "First Citizen:";

enum class Form : uint8_t { completion, chat, native };

// A field with a value that is wrong in any body.
struct Bad {
  const char* field;
  json value;
};
const std::vector<Bad>& bad_fields() {
  static const std::vector<Bad> all = {{"temperature", "hot"},
                                       {"temperature", -1},
                                       {"temperature", json::array()},
                                       {"top_p", 1.5},
                                       {"top_k", -7},
                                       {"top_k", 1.5},
                                       {"min_p", true},
                                       {"typical_p", 0},
                                       {"xtc_probability", 2},
                                       {"repeat_penalty", 0},
                                       {"repeat_last_n", -2},
                                       {"presence_penalty", "x"},
                                       {"frequency_penalty", 1e300},
                                       {"seed", 0.5},
                                       {"seed", "x"},
                                       {"n", 0},
                                       {"n", 65},
                                       {"n", "2"},
                                       {"n_cmpl", -1},
                                       {"best_of", 64},
                                       {"max_tokens", -2},
                                       {"max_tokens", 1e30},
                                       {"max_completion_tokens", "4"},
                                       {"n_predict", false},
                                       {"stop", 5},
                                       {"stop", {1}},
                                       {"stop", std::vector<std::string>(65, "a")},
                                       {"stream", "yes"},
                                       {"stream_options", 1},
                                       {"stream_options", {{"all", true}}},
                                       {"logit_bias", 7},
                                       {"logit_bias", {{"-3", 1}}},
                                       {"logit_bias", {{"5", "much"}}},
                                       {"samplers", {"no_such"}},
                                       {"samplers", 3},
                                       {"n_probs", 21},
                                       {"logprobs", "x"},
                                       {"ignore_eos", 1},
                                       {"model", 5},
                                       {"timings_per_token", "x"},
                                       {"tools", {{{"type", "function"}}}},
                                       {"tool_choice", "required"},
                                       {"functions", {{{"name", "f"}}}},
                                       {"grammar", "root ::= x"},
                                       {"json_schema", json::object()},
                                       {"response_format", {{"type", "json_object"}}},
                                       {"guided_json", {{"type", "object"}}},
                                       {"suffix", "x"},
                                       {"mirostat", 2},
                                       {"dry_multiplier", 0.8},
                                       {"dynatemp_range", 0.5},
                                       {"min_tokens", 4},
                                       {"stop_token_ids", {2}},
                                       {"repetition_penalty", 1.1},
                                       {"length_penalty", 2.0},
                                       {"truncate_prompt_tokens", 2},
                                       {"add_special_tokens", false},
                                       {"skip_special_tokens", false},
                                       {"include_stop_str_in_output", true},
                                       {"reasoning_format", "deepseek"},
                                       {"reasoning_effort", "low"},
                                       {"thinking", {{"type", "enabled"}}},
                                       {"thinking_budget_tokens", 5},
                                       {"chat_template", "{{ x }}"},
                                       {"lora", {{{"id", 0}, {"scale", 1}}}},
                                       {"max_new_tokens", 4},
                                       {"no_such_field", 1},
                                       {"temprature", 0.5},
                                       {"a name: with more", "x"},
                                       {"", 1}};
  return all;
}

// Fields without effect on the answer.
const std::vector<Bad>& idle_fields() {
  static const std::vector<Bad> all = {{"tools", json::array()},
                                       {"tool_choice", "auto"},
                                       {"parallel_tool_calls", true},
                                       {"response_format", {{"type", "text"}}},
                                       {"n_probs", 0},
                                       {"suffix", nullptr},
                                       {"no_such_field", nullptr},
                                       {"temperature", nullptr},
                                       {"mirostat", 0},
                                       {"mirostat_tau", 5.0},
                                       {"dry_multiplier", 0.0},
                                       {"dry_base", 1.75},
                                       {"grammar", ""},
                                       {"lora", json::array()},
                                       {"repetition_penalty", 1.0},
                                       {"add_special_tokens", true},
                                       {"user", "me"},
                                       {"metadata", {{"a", "b"}}},
                                       {"store", false},
                                       {"service_tier", "auto"},
                                       {"safety_identifier", "x"},
                                       {"prompt_cache_key", "x"},
                                       {"cache_prompt", false},
                                       {"id_slot", -1},
                                       {"n_keep", 0},
                                       {"stream_options", json::object()},
                                       {"logit_bias", json::object()},
                                       {"presence_penalty", 0},
                                       {"frequency_penalty", 0},
                                       {"top_p", 0.5},  // without a temperature
                                       {"seed", 7},
                                       {"model", "any"}};
  return all;
}

class ServerFields : public Server {
 protected:
  static const char* path_of(Form form) {
    constexpr const char* kPaths[] = {"/v1/completions", "/v1/chat/completions", "/completion"};
    return kPaths[static_cast<size_t>(form)];
  }
  static json body_of(Form form) {
    json body = {{"temperature", 0}};
    if (form == Form::chat) {
      body["messages"] = {{{"role", "user"}, {"content", kPrompt}}};
    } else {
      body["prompt"] = kPrompt;
    }
    return body;
  }
  // Returns the texts of an answer, whole or streamed.
  static std::vector<std::string> texts_of(Form form, const HttpAnswer& answer, bool stream) {
    std::map<size_t, std::string> texts;
    const auto take = [&](const json& choice, const char* message) {
      std::string& text = texts[choice.value("index", size_t{0})];
      if (form == Form::native) text += choice["content"].get<std::string>();
      if (form == Form::completion) text += choice["text"].get<std::string>();
      if (form == Form::chat) text += choice[message].value("content", "");
    };
    const auto take_all = [&](const json& object, const char* message) {
      if (form == Form::native && object.is_array()) {
        for (const json& one : object) take(one, message);
      } else if (form == Form::native) {
        take(object, message);
      } else {
        for (const json& choice : object["choices"]) take(choice, message);
      }
    };
    if (!stream) take_all(json::parse(answer.body), "message");
    for (const json& event : stream ? events(answer.body) : std::vector<json>()) {
      if (event.is_object()) take_all(event, "delta");
    }
    std::vector<std::string> list;
    for (const auto& [index, text] : texts) list.push_back(text);
    return list;
  }
  // Returns the text of `tokens` tokens as the plainest request gets it.
  std::string known(Form form, size_t tokens) {
    const auto [found, is_new] = known_.try_emplace({form, tokens});
    if (is_new) {
      json body = body_of(form);
      body["max_tokens"] = tokens;
      found->second = texts_of(form, post(path_of(form), body), false).at(0);
    }
    return found->second;
  }

  std::map<std::pair<Form, size_t>, std::string> known_;
};

TEST_F(ServerFields, EachIsObeyedOrNamed) {
  start({"--chat-template", "chatml", "-np", "4"});
  Random random(20);
  const auto one_of = [&](const std::vector<Bad>& list) { return list[random.below(list.size())]; };
  int answered = 0;
  for (int i = 0; i < kCases; ++i) {
    const auto form = static_cast<Form>(random.below(3));
    json body = body_of(form);
    const size_t tokens = random.below(kMostTokens + 1);
    constexpr const char* kLengths[] = {"max_tokens", "n_predict", "max_completion_tokens"};
    body[kLengths[random.below(3)]] = tokens;
    std::string expected = known(form, tokens);
    for (uint64_t idle = random.below(4); idle-- > 0;) {
      const Bad field = one_of(idle_fields());
      if (!body.contains(field.field)) body[field.field] = field.value;
    }
    size_t n = 1;
    if (random.below(3) == 0) body[random.below(2) == 0 ? "n" : "n_cmpl"] = n = 1 + random.below(3);
    if (random.below(3) == 0 && expected.size() > 2) {
      const std::string stop = expected.substr(random.below(expected.size() - 1), 2);
      body["stop"] = random.below(2) == 0 ? json(stop) : json{stop, "never"};
      expected = expected.substr(0, expected.find(stop));
    }
    const bool stream = random.below(4) == 0;
    if (stream) body["stream"] = true;
    const bool logprobs = random.below(4) == 0;
    if (logprobs && form == Form::chat) body["logprobs"] = true, body["top_logprobs"] = 2;
    if (logprobs && form != Form::chat) body["logprobs"] = 2;
    if (form == Form::completion && !logprobs && random.below(4) == 0) {
      body["echo"] = true;
      expected = kPrompt + expected;
    }
    std::set<std::string> at_fault;
    for (uint64_t bad = random.below(2) * (1 + random.below(2)); bad-- > 0;) {
      const Bad field = one_of(bad_fields());
      body[field.field] = field.value;
      at_fault.insert(field.field);
    }
    const HttpAnswer answer = post(path_of(form), body);
    SCOPED_TRACE(std::string(path_of(form)) + " " + body.dump() + " -> " + answer.body.substr(0, 500));
    if (!at_fault.empty()) {
      EXPECT_EQ(answer.status, 400u);
      const json error = json::parse(answer.body)["error"];
      EXPECT_EQ(error["type"], "invalid_request_error");
      const std::string param = error["param"].is_string() ? error["param"].get<std::string>() : "null";
      const bool named = std::ranges::any_of(at_fault, [&](const std::string& field) {
        return param == field.substr(0, field.find(": ")) || param.starts_with(field + ".");
      });
      EXPECT_TRUE(named) << param;
      continue;
    }
    ++answered;
    ASSERT_EQ(answer.status, 200u);
    EXPECT_EQ(texts_of(form, answer, stream), std::vector<std::string>(n, expected));
    if (!logprobs || stream) continue;
    const json whole = json::parse(answer.body);
    const json& first = form == Form::native ? (whole.is_array() ? whole[0] : whole) : whole["choices"][0];
    if (form == Form::chat && tokens != 0) {
      EXPECT_EQ(first["logprobs"]["content"][0]["top_logprobs"].size(), 2u);
    }
    if (form == Form::completion) {
      EXPECT_TRUE(first["logprobs"]["token_logprobs"].is_array());
    }
    if (form == Form::native) {
      EXPECT_TRUE(first["completion_probabilities"].is_array());
    }
  }
  EXPECT_GT(answered, kCases / 4);
  EXPECT_EQ(get("/health").status, 200u);
}

}  // namespace
}  // namespace tierd
