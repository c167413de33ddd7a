// The routes that make texts, or turn them into tokens and back.
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/log.h"
#include "core/store/json_fields.h"
#include "core/text/text_stream.h"
#include "tools/tierd/api/api.h"
#include "tools/tierd/api/api_reply.h"
#include "tools/tierd/api/completion_answer.h"

namespace tierd {
namespace {

using nlohmann::json;

std::string_view name_of(EndEvent::Why why) {
  switch (why) {
    case EndEvent::Why::end_token:
      return "end of text";
    case EndEvent::Why::stop_string:
      return "stop string";
    case EndEvent::Why::most_tokens:
      return "length";
    case EndEvent::Why::context_full:
      return "context full";
    case EndEvent::Why::cancelled:
      return "cancelled";
    case EndEvent::Why::failed:
      break;
  }
  return "failed";
}

std::function<void(const std::string&)> sent_to(const std::shared_ptr<HttpReply>& reply) {
  return [reply](const std::string& answer) { reply->send(200, kJsonType, answer); };
}

}  // namespace

// Texts that one client waits for.
struct Api::Submission {
  std::string id;  // of the request
  std::shared_ptr<CompletionAnswer> answer;
  std::vector<Batcher::Id> ids;  // [engine's thread]
  bool cancelled = false;        // [server's thread]
};

// A text that is over, whoever hears it.
void Api::ended(const Submission& submission, size_t index, const EndEvent& end) const {
  if (options_.quiet) return;
  const GenerationTimes& times = end.times;
  const double prompt_ms = static_cast<double>(times.prompt_ns) / 1e6;
  const double generated_ms = static_cast<double>(times.generated_ns) / 1e6;
  const std::string_view why = name_of(end.why);
  const LogField fields[] = {{"request", submission.id},
                             {"text", uint64_t{index}},
                             {"prompt_tokens", times.prompt_tokens},
                             {"cached_tokens", times.cached_tokens},
                             {"prompt_ms", prompt_ms},
                             {"generated_tokens", times.generated_tokens},
                             {"generated_ms", generated_ms},
                             {"ended_by", why}};
  say(fmt::format(
          "text {}: prompt of {} tokens ({} cached) in {:.1f} ms, {} generated in {:.1f} ms, {}{} [{}]",
          index, times.prompt_tokens, times.cached_tokens, prompt_ms, times.generated_tokens, generated_ms,
          why, end.error ? ": " + end.error->line() : "", submission.id),
      fields);
}

// Some contexts of tokens: what holds more takes memory for nothing.
Result<json> Api::body_of(const HttpRequest& request) const {
  return parse_json(request.body, kRequest, 4096 + uint64_t{4} * options_.model.context);
}

void Api::tokenize(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  const auto read = [this, asked = std::move(request)]() -> Result<std::string> {
    TIERD_ASSIGN(const json body, body_of(asked));
    TIERD_ASSIGN(const JsonFields fields, JsonFields::of(body, kRequest));
    TIERD_ASSIGN(const std::string content, fields.text("content"));
    TIERD_ASSIGN(const bool add_special, fields.flag("add_special", false));
    TIERD_ASSIGN(const bool parse_special, fields.flag("parse_special", true));
    TIERD_ASSIGN(const bool with_pieces, fields.flag("with_pieces", false));
    json tokens = json::array();
    for (const uint32_t token : tokenizer_.encode(content, add_special, parse_special)) {
      if (!with_pieces) {
        tokens.push_back(token);
        continue;
      }
      const std::string bytes = tokenizer_.piece(token, true);
      json piece = bytes;
      if (well_formed(bytes) != bytes) piece = std::vector<unsigned char>(bytes.begin(), bytes.end());
      tokens.push_back({{"id", token}, {"piece", std::move(piece)}});
    }
    return text_of(json{{"tokens", std::move(tokens)}});
  };
  read_apart(reply, read, sent_to(reply));
}

void Api::detokenize(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  const auto read = [this, asked = std::move(request)]() -> Result<std::string> {
    TIERD_ASSIGN(const json body, body_of(asked));
    TIERD_ASSIGN(const JsonFields fields, JsonFields::of(body, kRequest));
    TIERD_ASSIGN(const std::vector<uint32_t> tokens, fields.u32_list("tokens"));
    for (const uint32_t token : tokens) {
      if (token < tokenizer_.vocab().pieces.size()) continue;
      return fields.error(Code::invalid_argument, "tokens",
                          fmt::format("{} is no token of this model", token));
    }
    return text_of(json{{"content", well_formed(tokenizer_.decode(tokens))}});
  };
  read_apart(reply, read, sent_to(reply));
}

void Api::embeddings(HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  send(*reply, api_error(501, "this model makes texts, no embeddings"));
}

void Api::completions(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  complete(request, reply, nullptr);
}

void Api::chat_completions(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  if (!options_.chat.ok()) return send(*reply, api_error(options_.chat.error()));
  complete(request, reply, &*options_.chat);
}

void Api::apply_template(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  if (!options_.chat.ok()) return send(*reply, api_error(options_.chat.error()));
  const auto read = [this, asked = std::move(request)]() -> Result<std::string> {
    TIERD_ASSIGN(const json body, body_of(asked));
    TIERD_ASSIGN(const std::string text, read_chat(body, *options_.chat));
    return text_of(json{{"prompt", text}});
  };
  read_apart(reply, read, sent_to(reply));
}

void Api::complete(HttpRequest& request, const std::shared_ptr<HttpReply>& reply, const ChatTemplate* chat) {
  const std::string id = request.id;
  const auto read = [this, chat, asked = std::move(request)]() -> Result<CompletionRequest> {
    TIERD_ASSIGN(const json body, body_of(asked));
    return read_completion(body, tokenizer_, options_.defaults, chat);
  };
  read_apart(reply, read, [this, id, reply, chat](const CompletionRequest& completion) {
    submit(id, completion, reply, chat != nullptr);
  });
}

void Api::submit(const std::string& request_id, const CompletionRequest& request,
                 const std::shared_ptr<HttpReply>& reply, bool chat) {
  const auto submission = std::make_shared<Submission>();
  submission->id = request_id;
  submission->answer = std::make_shared<CompletionAnswer>(
      reply, tokenizer_, request,
      CompletionAnswer::About{
          fmt::format("{}-{:016x}{:016x}", chat ? "chatcmpl" : "cmpl", random_(), random_()),
          options_.model.name, chat, static_cast<uint64_t>(std::time(nullptr))});
  // Not in the submission, which they hold.
  std::vector<std::shared_ptr<Generation>> generations;
  const std::weak_ptr<Submission> weak = submission;
  const auto give_up = [this, weak] {
    const std::shared_ptr<Submission> left = weak.lock();
    if (!left || std::exchange(left->cancelled, true)) return;
    desk_.leave([this, left] {
      Batcher* const batcher = batcher_.load();
      if (batcher == nullptr) return;
      for (const Batcher::Id id : left->ids) batcher->cancel(id);
    });
  };
  for (size_t i = 0; i < request.prompts.size() * request.n; ++i) {
    GenerationOptions options = request.generation;
    // Texts of one prompt differ.
    options.sampling.seed = request.random_seed ? random_() : options.sampling.seed + i % request.n;
    auto generation =
        Generation::create(tokenizer_, request.prompts[i / request.n], std::move(options),
                           [this, submission, give_up, i](GenerationEvent event) {
                             server_->post([this, submission, give_up, i, event = std::move(event)] {
                               if (const auto* end = std::get_if<EndEvent>(&event))
                                 ended(*submission, i, *end);
                               submission->answer->event(i, event);
                               if (submission->answer->over()) give_up();
                             });
                           });
    if (!generation.ok()) return send(*reply, api_error(generation.error()));
    generations.push_back(std::move(*generation));
  }
  if (!desk_.try_leave([this, submission, generations] { hand_over(submission, generations); }))
    return submission->answer->refused(api_error(429, "too many requests wait"));
  reply->on_gone(give_up);
}

// [engine's thread] All of its texts, or none.
void Api::hand_over(const std::shared_ptr<Submission>& submission,
                    const std::vector<std::shared_ptr<Generation>>& generations) {
  Batcher* const batcher = batcher_.load();
  Status status;
  if (batcher == nullptr) status = Error{Code::cancelled, "server", "is going down"};
  for (const std::shared_ptr<Generation>& generation : generations) {
    if (!status.ok()) break;
    const auto id = batcher->add(Generation::text_of(generation, submission->id));
    if (id.ok()) {
      submission->ids.push_back(*id);
    } else {
      status = id.error();
    }
  }
  if (status.ok()) return server_->post([submission] { submission->answer->accepted(); });
  // Before any of the others says that it was cancelled.
  server_->post([submission, error = api_error(status.error())] { submission->answer->refused(error); });
  for (const Batcher::Id id : submission->ids) batcher->cancel(id);
}

}  // namespace tierd
