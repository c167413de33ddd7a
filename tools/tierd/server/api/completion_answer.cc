#include "tools/tierd/server/api/completion_answer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/model/text/text_stream.h"
#include "tools/tierd/server/api/answer_json.h"
#include "tools/tierd/server/api/native_answer.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr const char* kEventStream = "text/event-stream";
constexpr const char* kPing = ": ping\n\n";
// Bytes of an answer that is kept until it is complete. They come on top of the budget.
constexpr uint64_t kMostKept = uint64_t{24} << 20;
constexpr uint64_t kBytesOfLogprob = 128;

std::string dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

CompletionAnswer::CompletionAnswer(std::shared_ptr<HttpReply> reply, const Tokenizer& tokenizer,
                                   std::shared_ptr<const CompletionRequest> request, About about)
    : reply_(std::move(reply)),
      tokenizer_(tokenizer),
      about_(std::move(about)),
      request_(std::move(request)),
      n_(request_->n),
      stream_(request_->stream),
      logprobs_(request_->generation.logprobs.has_value()),
      choices_(request_->prompts.size() * n_),
      left_(choices_.size()) {
  if (!request_->echo) return;
  for (const std::vector<uint32_t>& prompt : request_->prompts) echoed_.push_back(tokenizer.decode(prompt));
}

void CompletionAnswer::accepted() {
  if (over_ || !stream_) return;
  reply_->begin(200, kEventStream, kPing);
}

void CompletionAnswer::refused(const ApiError& why) {
  if (over_) return;
  over_ = true;
  HttpHeaders headers;
  if (why.status == 429 || why.status == 503) headers.emplace_back("Retry-After", "1");
  reply_->send(why.status, kJsonType, why.body(), std::move(headers));
}

void CompletionAnswer::event(size_t index, const GenerationEvent& event) {
  if (over_) return;
  std::visit([&](const auto& e) { take(index, e); }, event);
}

void CompletionAnswer::take(size_t index, const ProgressEvent& event) {
  if (!stream_ || !request_->return_progress) return;
  const PromptProgress& prompt = event.prompt;
  const json progress = {{"index", index},
                         {"total", prompt.tokens},
                         {"cache", prompt.cached},
                         {"processed", prompt.done},
                         {"time_ms", milliseconds(event.ns)}};
  json object;
  if (is_native()) {
    object = native_part({index, "", {}, {.prompt_tokens = prompt.tokens}});
  } else {
    object = chunk();
    object["choices"] = json::array();
  }
  object["prompt_progress"] = progress;
  tell(std::move(object));
}

void CompletionAnswer::take(size_t index, const PromptTokenEvent& token) {
  if (is_native() || !may_keep(kBytesOfLogprob * (1 + (token.logprobs ? token.logprobs->top.size() : 0))))
    return;
  choices_[index].tokens.push_back(token);
}

void CompletionAnswer::take(size_t index, const TokenEvent& token) {
  Choice& choice = choices_[index];
  const uint64_t logprobs = token.logprobs ? 1 + token.logprobs->top.size() : 0;
  if (!may_keep(token.text.size() + kBytesOfLogprob * logprobs)) return;
  if (logprobs_) choice.tokens.push_back({token.token, token.bytes, token.logprobs});
  if (is_native()) {
    if (stream_ || request_->return_tokens) choice.numbers.push_back(token.token);
    choice.has_new_line |= token.text.find('\n') != std::string::npos;
  }
  if (stream_) {
    if (!token.text.empty() || logprobs_) tell_text(index, token.text, token.times);
  } else {
    choice.text += token.text;
  }
}

void CompletionAnswer::take(size_t index, const EndEvent& end) {
  if (end.why == EndEvent::Why::failed) {
    // A shortage of memory in a strategy is the server's fault, and its budget may be raised: 503.
    const bool short_memory = end.error->code == Code::no_space;
    return fail(short_memory ? api_error(503, end.error->line()) : api_error(*end.error));
  }
  if (end.why == EndEvent::Why::cancelled) return fail(api_error(503, "the server is shutting down"));
  Choice& choice = choices_[index];
  choice.ended = true;
  choice.end = end;
  choice.finish_reason = reason_of(end);
  choice.has_new_line |= end.text.find('\n') != std::string::npos;
  if (stream_) {
    if (!end.text.empty()) tell_text(index, end.text, end.times);
    if (is_native()) {
      tell(native_json(index, ""));
    } else {
      json last = chunk();
      const std::string nothing;
      last["choices"] = json::array({choice_json(index, &nothing, true)});
      last["timings"] = timings_json(end.times);
      tell(std::move(last));
    }
  } else {
    choice.text += end.text;
  }
  if (--left_ == 0) finish();
}

// An answer that is one object is kept until its last text has ended.
bool CompletionAnswer::may_keep(uint64_t bytes) {
  if (stream_) return true;
  kept_bytes_ += bytes;
  if (kept_bytes_ <= kMostKept) return true;
  ApiError error = api_error(
      400, fmt::format(
               "stream: the answer takes more than {} bytes; request a stream, or fewer tokens or logprobs",
               kMostKept));
  error.param = "stream";
  fail(error);
  return false;
}

json CompletionAnswer::object(const char* kind) const {
  return {{"id", about_.id}, {"object", kind}, {"created", about_.created}, {"model", about_.model}};
}

json CompletionAnswer::chunk() const {
  return object(is_chat() ? "chat.completion.chunk" : "text_completion");
}

void CompletionAnswer::tell(json object) {
  reply_->write("data: " + dump(object) + "\n\n");
}

void CompletionAnswer::tell_text(size_t index, const std::string& text, const GenerationTimes& times) {
  json object;
  if (is_native()) {
    Choice& choice = choices_[index];
    object = native_part({index, text, std::exchange(choice.numbers, {}), times});
    if (logprobs_) object["completion_probabilities"] = native_probabilities(choice.tokens, tokenizer_);
    choice.tokens.clear();
  } else {
    object = chunk();
    object["choices"] = json::array({choice_json(index, &text, false)});
  }
  if (request_->timings_per_token) object["timings"] = timings_json(times);
  tell(std::move(object));
}

json CompletionAnswer::native_json(size_t index, std::string content) {
  Choice& choice = choices_[index];
  const std::vector<uint32_t> numbers = stream_ ? std::vector<uint32_t>() : choice.numbers;
  json object = native_text({index, about_.model, std::move(content), numbers, choice.has_new_line},
                            choice.end, *request_, tokenizer_.decode(request_->prompts[index / n_], true));
  if (!stream_ && logprobs_)
    object["completion_probabilities"] = native_probabilities(choice.tokens, tokenizer_);
  return object;
}

// `delta` NULL: writes the whole text.
json CompletionAnswer::choice_json(size_t index, const std::string* delta, bool last) {
  Choice& choice = choices_[index];
  json object = {{"index", index}};
  object["finish_reason"] = last ? json(choice.finish_reason) : json(nullptr);
  const bool first = !choice.begun;
  choice.begun = true;
  if (is_chat()) {
    json message = json::object();
    if (delta == nullptr || first) message["role"] = "assistant";
    if (delta == nullptr || !last) message["content"] = delta == nullptr ? choice.text : *delta;
    object[delta == nullptr ? "message" : "delta"] = std::move(message);
  } else {
    std::string text = delta == nullptr ? choice.text : *delta;
    if (first && !echoed_.empty()) text.insert(0, echoed_[index / n_]);
    object["text"] = std::move(text);
  }
  object["logprobs"] = logprobs_json(choice);
  return object;
}

json CompletionAnswer::logprobs_json(Choice& choice) const {
  if (!logprobs_) return nullptr;
  return is_chat() ? token_list(choice) : token_table(choice);
}

// Returns the logprobs of a chat.
json CompletionAnswer::token_list(Choice& choice) const {
  json content = json::array();
  for (const PromptTokenEvent& token : choice.tokens) {
    json top = json::array();
    for (const TokenLogprob& other : token.logprobs->top) {
      const std::string bytes = tokenizer_.piece(other.token, true);
      top.push_back(
          {{"token", well_formed(bytes)}, {"logprob", other.logprob}, {"bytes", bytes_json(bytes)}});
    }
    content.push_back({{"token", well_formed(token.bytes)},
                       {"logprob", token.logprobs->chosen.logprob},
                       {"bytes", bytes_json(token.bytes)},
                       {"top_logprobs", std::move(top)}});
  }
  choice.tokens.clear();
  return {{"content", std::move(content)}};
}

// Returns the text that a token adds. An echo begins without BOS and without the space before its first word.
std::string CompletionAnswer::shown(const Choice& choice, uint32_t token) const {
  if (choice.characters == 0 && !echoed_.empty()) return tokenizer_.decode({token});
  return tokenizer_.piece(token, false);
}

// Returns the logprobs of a completion.
json CompletionAnswer::token_table(Choice& choice) const {
  json tokens = json::array(), logprobs = json::array(), tops = json::array(), offsets = json::array();
  for (const PromptTokenEvent& token : choice.tokens) {
    tokens.push_back(token_text(token.bytes));
    offsets.push_back(choice.characters);
    choice.characters += characters(shown(choice, token.token));
    logprobs.push_back(token.logprobs ? json(token.logprobs->chosen.logprob) : json(nullptr));
    json top = nullptr;
    if (token.logprobs) {
      top = json::object();
      // Among tokens with the same text the most probable one is written.
      for (const TokenLogprob& other : token.logprobs->top)
        top.emplace(token_text(tokenizer_.piece(other.token, true)), other.logprob);
      // The chosen token is always written, so that the list may have one entry more than requested.
      top.emplace(token_text(token.bytes), token.logprobs->chosen.logprob);
    }
    tops.push_back(std::move(top));
  }
  choice.tokens.clear();
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

// Counts each prompt once, for all of its texts.
json CompletionAnswer::usage_json() const {
  uint64_t prompt = 0, cached = 0, generated = 0;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const GenerationTimes& end = choices_[i].end.times;
    if (i % n_ == 0) prompt += end.prompt_tokens, cached += end.cached_tokens;
    generated += end.generated_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", generated},
          {"total_tokens", prompt + generated},
          {"prompt_tokens_details", {{"cached_tokens", cached}}}};
}

void CompletionAnswer::finish() {
  over_ = true;
  if (!stream_) return reply_->send(200, kJsonType, whole());
  if (!is_native()) {
    if (request_->include_usage) {
      json last = chunk();
      last["choices"] = json::array();
      last["usage"] = usage_json();
      tell(std::move(last));
    }
    reply_->write("data: [DONE]\n\n");
  }
  reply_->end();
}

// Writes one text after the other: one JSON value of all texts and logprobs would take many times the bytes.
std::string CompletionAnswer::whole() {
  std::string texts;
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (i != 0) texts += ',';
    texts += dump(is_native() ? native_json(i, choices_[i].text) : choice_json(i, nullptr, true));
    choices_[i].tokens = {};
  }
  if (is_native()) return choices_.size() == 1 ? texts : "[" + texts + "]";
  json answer = object(is_chat() ? "chat.completion" : "text_completion");
  answer["usage"] = usage_json();
  if (choices_.size() == 1) answer["timings"] = timings_json(choices_[0].end.times);
  std::string rest = dump(answer);
  rest.pop_back();
  return rest + ",\"choices\":[" + texts + "]}";
}

// Sends the error. A stream that has begun ends without [DONE].
void CompletionAnswer::fail(const ApiError& why) {
  over_ = true;
  if (!stream_) return reply_->send(why.status, kJsonType, why.body());
  reply_->write("data: " + why.body() + "\n\n");
  reply_->end();
}

}  // namespace tierd
