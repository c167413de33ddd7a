#include "tools/tierd/api/completion_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tierd {
namespace {

using nlohmann::json;

constexpr const char* kEventStream = "text/event-stream";
constexpr const char* kPing = ": ping\n\n";

std::string dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

// A token as OpenAI's older answers have it: those that are no text by themselves by their bytes.
std::string token_text(std::string_view bytes) {
  std::string text = well_formed(bytes);
  if (text == bytes) return text;
  text = "bytes:";
  for (const char byte : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return text;
}

size_t characters(std::string_view bytes) {
  const std::string text = well_formed(bytes);
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

json bytes_json(std::string_view bytes) {
  json list = json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

const char* reason_of(const EndEvent& end) {
  switch (end.why) {
    case EndEvent::Why::end_token:
    case EndEvent::Why::stop_string:
      return "stop";
    case EndEvent::Why::most_tokens:
    case EndEvent::Why::context_full:
      return "length";
    case EndEvent::Why::cancelled:
      return "cancelled";
    case EndEvent::Why::failed:
      break;
  }
  return "error";
}

double per_second(uint64_t tokens, uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(tokens) * 1e9 / static_cast<double>(ns);
}

double milliseconds(uint64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

double milliseconds_each(uint64_t tokens, uint64_t ns) {
  return tokens == 0 ? 0 : milliseconds(ns) / static_cast<double>(tokens);
}

// By llama.cpp's names.
json timings_json(const GenerationTimes& end) {
  const uint64_t computed = end.prompt_tokens - end.cached_tokens;
  json timings = {{"cache_n", end.cached_tokens},
                  {"prompt_n", computed},
                  {"prompt_ms", milliseconds(end.prompt_ns)},
                  {"prompt_per_token_ms", milliseconds_each(computed, end.prompt_ns)},
                  {"prompt_per_second", per_second(computed, end.prompt_ns)},
                  {"predicted_n", end.generated_tokens},
                  {"predicted_ms", milliseconds(end.generated_ns)},
                  {"predicted_per_token_ms", milliseconds_each(end.generated_tokens, end.generated_ns)},
                  {"predicted_per_second", per_second(end.generated_tokens, end.generated_ns)}};
  // As llama-server has them: where something was guessed.
  if (end.guesses != 0) timings["draft_n"] = end.guesses, timings["draft_n_accepted"] = end.right_guesses;
  return timings;
}

}  // namespace

CompletionAnswer::CompletionAnswer(std::shared_ptr<HttpReply> reply, const Tokenizer& tokenizer,
                                   const CompletionRequest& request, About about)
    : reply_(std::move(reply)),
      tokenizer_(tokenizer),
      about_(std::move(about)),
      n_(request.n),
      stream_(request.stream),
      include_usage_(request.include_usage),
      return_progress_(request.return_progress),
      timings_per_token_(request.timings_per_token),
      logprobs_(request.generation.logprobs.has_value()),
      choices_(request.prompts.size() * request.n),
      left_(choices_.size()) {
  if (!request.echo) return;
  for (const std::vector<uint32_t>& prompt : request.prompts) echoed_.push_back(tokenizer.decode(prompt));
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
  if (!stream_ || !return_progress_) return;
  const PromptProgress& prompt = event.prompt;
  json chunk = object(about_.chat ? "chat.completion.chunk" : "text_completion");
  chunk["choices"] = json::array();
  chunk["prompt_progress"] = {{"index", index},
                              {"total", prompt.tokens},
                              {"cache", prompt.cached},
                              {"processed", prompt.done},
                              {"time_ms", milliseconds(event.ns)}};
  tell(std::move(chunk));
}

void CompletionAnswer::take(size_t index, const PromptTokenEvent& token) {
  choices_[index].tokens.push_back(token);
}

void CompletionAnswer::take(size_t index, const TokenEvent& token) {
  Choice& choice = choices_[index];
  if (logprobs_) choice.tokens.push_back({token.token, token.bytes, token.logprobs});
  if (stream_) {
    if (!token.text.empty() || logprobs_) tell_text(index, token.text, token.times);
  } else {
    choice.text += token.text;
  }
}

void CompletionAnswer::take(size_t index, const EndEvent& end) {
  if (end.why == EndEvent::Why::failed) return fail(api_error(*end.error));
  if (end.why == EndEvent::Why::cancelled) return fail(api_error(503, "the server is going down"));
  Choice& choice = choices_[index];
  choice.ended = true;
  choice.end = end;
  choice.finish_reason = reason_of(end);
  if (stream_) {
    if (!end.text.empty()) tell_text(index, end.text, end.times);
    json chunk = object(about_.chat ? "chat.completion.chunk" : "text_completion");
    const std::string nothing;
    chunk["choices"] = json::array({choice_json(index, &nothing, true)});
    chunk["timings"] = timings_json(end.times);
    tell(std::move(chunk));
  } else {
    choice.text += end.text;
  }
  if (--left_ == 0) finish();
}

json CompletionAnswer::object(const char* kind) const {
  return {{"id", about_.id}, {"object", kind}, {"created", about_.created}, {"model", about_.model}};
}

void CompletionAnswer::tell(json object) {
  reply_->write("data: " + dump(object) + "\n\n");
}

void CompletionAnswer::tell_text(size_t index, const std::string& text, const GenerationTimes& times) {
  json chunk = object(about_.chat ? "chat.completion.chunk" : "text_completion");
  chunk["choices"] = json::array({choice_json(index, &text, false)});
  if (timings_per_token_) chunk["timings"] = timings_json(times);
  tell(std::move(chunk));
}

// `delta` NULL: the whole of it.
json CompletionAnswer::choice_json(size_t index, const std::string* delta, bool last) {
  Choice& choice = choices_[index];
  json object = {{"index", index}};
  object["finish_reason"] = last ? json(choice.finish_reason) : json(nullptr);
  const bool first = !choice.begun;
  choice.begun = true;
  if (about_.chat) {
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
  return about_.chat ? token_list(choice) : token_table(choice);
}

// For chats.
json CompletionAnswer::token_list(Choice& choice) const {
  json content = json::array();
  for (; choice.told < choice.tokens.size(); ++choice.told) {
    const PromptTokenEvent& token = choice.tokens[choice.told];
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
  return {{"content", std::move(content)}};
}

// What a token adds to the text: an echo begins without BOS, and without the space of its first word.
std::string CompletionAnswer::shown(const Choice& choice, uint32_t token) const {
  if (choice.characters == 0 && !echoed_.empty()) return tokenizer_.decode({token});
  return tokenizer_.piece(token, false);
}

// For completions.
json CompletionAnswer::token_table(Choice& choice) const {
  json tokens = json::array(), logprobs = json::array(), tops = json::array(), offsets = json::array();
  for (; choice.told < choice.tokens.size(); ++choice.told) {
    const PromptTokenEvent& token = choice.tokens[choice.told];
    tokens.push_back(token_text(token.bytes));
    offsets.push_back(choice.characters);
    choice.characters += characters(shown(choice, token.token));
    logprobs.push_back(token.logprobs ? json(token.logprobs->chosen.logprob) : json(nullptr));
    json top = nullptr;
    if (token.logprobs) {
      top = json::object();
      // Among tokens that look alike the most probable one counts.
      for (const TokenLogprob& other : token.logprobs->top)
        top.emplace(token_text(tokenizer_.piece(other.token, true)), other.logprob);
      // The token itself always, so that there may be one more than was asked for.
      top.emplace(token_text(token.bytes), token.logprobs->chosen.logprob);
    }
    tops.push_back(std::move(top));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

// A prompt counts once, however many texts it has.
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
  if (stream_) {
    if (include_usage_) {
      json chunk = object(about_.chat ? "chat.completion.chunk" : "text_completion");
      chunk["choices"] = json::array();
      chunk["usage"] = usage_json();
      tell(std::move(chunk));
    }
    reply_->write("data: [DONE]\n\n");
    return reply_->end();
  }
  json answer = object(about_.chat ? "chat.completion" : "text_completion");
  json choices = json::array();
  for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(choice_json(i, nullptr, true));
  answer["choices"] = std::move(choices);
  answer["usage"] = usage_json();
  if (choices_.size() == 1) answer["timings"] = timings_json(choices_[0].end.times);
  reply_->send(200, kJsonType, dump(answer));
}

// A stream that has begun ends without [DONE].
void CompletionAnswer::fail(const ApiError& why) {
  over_ = true;
  if (!stream_) return reply_->send(why.status, kJsonType, why.body());
  reply_->write("data: " + why.body() + "\n\n");
  reply_->end();
}

}  // namespace tierd
