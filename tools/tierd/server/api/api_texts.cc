// The routes that generate texts, and those that convert text to tokens and back.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json_fields.h"
#include "core/base/log.h"
#include "core/model/text/text_stream.h"
#include "tools/tierd/server/api/api.h"
#include "tools/tierd/server/api/api_reply.h"
#include "tools/tierd/server/api/chat_request.h"
#include "tools/tierd/server/api/completion_answer.h"

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

std::function<void(std::string)> sent_to(const std::shared_ptr<HttpReply>& reply) {
  return [reply](std::string answer) { reply->send(200, kJsonType, std::move(answer)); };
}

constexpr uint64_t kMostTokenized = uint64_t{256} << 10;
// Bytes that all requests together may use beside the budget, from reading to answering: half of the overhead
// that README.md names.
constexpr uint64_t kMostRequestBytes = uint64_t{32} << 20;

constexpr uint64_t kFewValues = 4096;

// Returns the number of keys in the objects of a JSON text. Each key takes more than a hundred bytes once it
// is parsed.
uint64_t keys_in(std::string_view text) {
  uint64_t keys = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (text[i] == '\\' && in_string) ++i;
    keys += text[i] == ':' && !in_string;
  }
  return keys;
}

// Writes {"tokens": [...]} token by token: one JSON value of all pieces would take a thousand bytes a token.
std::string tokens_text(const Tokenizer& tokenizer, const std::vector<uint32_t>& tokens, bool with_pieces) {
  std::string text = "{\"tokens\":[";
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i != 0) text += ',';
    if (!with_pieces) {
      text += std::to_string(tokens[i]);
      continue;
    }
    const std::string bytes = tokenizer.piece(tokens[i], true);
    json piece = bytes;
    if (well_formed(bytes) != bytes) piece = std::vector<unsigned char>(bytes.begin(), bytes.end());
    text += text_of(json{{"id", tokens[i]}, {"piece", std::move(piece)}});
  }
  return text + "]}";
}

}  // namespace

// The texts of one client's request.
struct Api::Submission {
  std::string id;                    // of the request
  std::shared_ptr<const void> room;  // see room_for
  std::shared_ptr<CompletionAnswer> answer;
  std::vector<Batcher::Id> ids;  // [engine's thread]
  bool cancelled = false;        // [server's thread]
};

// Notes a text that has ended, whether or not its client is still connected.
void Api::ended(const Submission& submission, size_t index, const EndEvent& end) {
  if (end.error && end.error->code == Code::corrupt) {
    const std::lock_guard lock(mutex_);
    damage_ = end.error->line() + "; convert the model again and restart the server";
  }
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

// Parses the body. Limits: tokens of four contexts, and as many keys as a bias of all tokens or a chat of one
// context needs.
Result<json> Api::body_of(const HttpRequest& request) const {
  const uint64_t most_keys = kFewValues + tokenizer_.vocab().pieces.size() + options_.model.context;
  if (keys_in(request.body) > most_keys)
    return Error{Code::corrupt, kRequestBody, fmt::format("JSON of more than {} keys", most_keys)};
  TIERD_ASSIGN(json body,
               parse_json(request.body, kRequestBody, kFewValues + uint64_t{4} * options_.model.context));
  if (!body.is_object()) return Error{Code::corrupt, kRequestBody, "expected a JSON object"};
  return body;
}

void Api::tokenize(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  const auto read = [this, asked = std::move(request)]() -> Result<std::string> {
    TIERD_ASSIGN(const json body, body_of(asked));
    TIERD_TRY(check_fields(body, BodyForm::tokenize));
    TIERD_ASSIGN(const JsonFields fields, JsonFields::of(body, kRequest));
    TIERD_ASSIGN(const std::string content, fields.text("content"));
    TIERD_ASSIGN(const bool add_special, fields.flag("add_special", false));
    TIERD_ASSIGN(const bool parse_special, fields.flag("parse_special", true));
    TIERD_ASSIGN(const bool with_pieces, fields.flag("with_pieces", false));
    if (content.size() > most_tokenized()) {
      return field_error("content",
                         fmt::format("{} bytes, expected at most {}", content.size(), most_tokenized()));
    }
    return tokens_text(tokenizer_, tokenizer_.encode(content, add_special, parse_special), with_pieces);
  };
  read_apart(reply, read, sent_to(reply));
}

// Tokenizing takes about a hundred bytes for each byte of the text.
uint64_t Api::most_tokenized() const {
  return std::max(kMostTokenized, uint64_t{4} * options_.model.context);
}

// Writes control tokens out, as llama-server does.
void Api::detokenize(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  const auto read = [this, asked = std::move(request)]() -> Result<std::string> {
    TIERD_ASSIGN(const json body, body_of(asked));
    TIERD_TRY(check_fields(body, BodyForm::detokenize));
    TIERD_ASSIGN(const JsonFields fields, JsonFields::of(body, kRequest));
    TIERD_ASSIGN(const std::vector<uint32_t> tokens, fields.u32_list("tokens"));
    for (const uint32_t token : tokens) {
      if (token < tokenizer_.vocab().pieces.size()) continue;
      return fields.error(Code::invalid_argument, "tokens",
                          fmt::format("{} is not a token of this model", token));
    }
    return text_of(json{{"content", well_formed(tokenizer_.decode(tokens, true))}});
  };
  read_apart(reply, read, sent_to(reply));
}

void Api::embeddings(HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  send(*reply, api_error(400, "embeddings are not supported", "input"));
}

void Api::completions(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  complete(request, reply, BodyForm::completion);
}

void Api::native_completions(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  complete(request, reply, BodyForm::native);
}

void Api::chat_completions(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  if (!options_.chat.ok()) return send_no_chat(*reply);
  complete(request, reply, BodyForm::chat);
}

void Api::apply_template(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  if (!options_.chat.ok()) return send_no_chat(*reply);
  const auto read = [this, asked = std::move(request)]() -> Result<std::string> {
    TIERD_ASSIGN(const json body, body_of(asked));
    TIERD_TRY(check_fields(body, BodyForm::chat_text));
    TIERD_ASSIGN(const std::string text, read_chat(body, *options_.chat));
    return text_of(json{{"prompt", text}});
  };
  read_apart(reply, read, sent_to(reply));
}

void Api::send_no_chat(HttpReply& reply) const {
  ApiError error = api_error(options_.chat.error());
  error.param = "messages";
  send(reply, error);
}

void Api::complete(HttpRequest& request, const std::shared_ptr<HttpReply>& reply, BodyForm form) {
  const std::string id = request.id;
  const auto read = [this, form, asked = std::move(request)]() -> Result<CompletionRequest> {
    TIERD_ASSIGN(const json body, body_of(asked));
    const ChatTemplate* const chat = form == BodyForm::chat ? &*options_.chat : nullptr;
    return read_completion(body, tokenizer_, options_.defaults, form, chat);
  };
  read_apart(reply, read, [this, id, reply, form](CompletionRequest completion) {
    if (const auto& too_long = completion.too_long) {
      return send(*reply, overflow_error(too_long->tokens, too_long->at_least, options_.defaults.context,
                                         form == BodyForm::chat ? "messages" : "prompt"));
    }
    submit(id, std::make_shared<const CompletionRequest>(std::move(completion)), reply, form);
  });
}

// Reserves the request's bytes of kMostRequestBytes until the result is destroyed. Returns NULL and sends the
// error where too few are left.
std::shared_ptr<const void> Api::room_for(const CompletionRequest& request, HttpReply& reply) {
  const uint64_t bytes = request_bytes(request);
  if (bytes > kMostRequestBytes) {
    send(reply, api_error(400,
                          fmt::format("n: the request's texts take {} bytes beside the model, expected at "
                                      "most {}; request fewer at once",
                                      bytes, kMostRequestBytes),
                          "n"));
    return nullptr;
  }
  if (request_bytes_->load() + bytes > kMostRequestBytes) {
    send(reply, api_error(503, "the requests in progress leave no memory for this one; try again"));
    return nullptr;
  }
  request_bytes_->fetch_add(bytes);
  return {static_cast<const void*>(request_bytes_.get()),
          [all = request_bytes_, bytes](const void*) { all->fetch_sub(bytes); }};
}

void Api::submit(const std::string& request_id, const std::shared_ptr<const CompletionRequest>& request,
                 const std::shared_ptr<HttpReply>& reply, BodyForm form) {
  const auto submission = std::make_shared<Submission>();
  submission->room = room_for(*request, *reply);
  if (submission->room == nullptr) return;
  submission->id = request_id;
  const char* const kind = form == BodyForm::chat ? "chatcmpl" : "cmpl";
  submission->answer = std::make_shared<CompletionAnswer>(
      reply, tokenizer_, request,
      CompletionAnswer::About{fmt::format("{}-{:016x}{:016x}", kind, random_(), random_()),
                              options_.model.name, form, static_cast<uint64_t>(std::time(nullptr))});
  // The submission does not own the generations, because their callbacks own the submission.
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
  const std::shared_ptr<const GenerationOptions> options(request, &request->generation);
  for (size_t i = 0; i < request->prompts.size() * request->n; ++i) {
    // Each text of a prompt has its own seed.
    const uint64_t seed = request->random_seed ? random_() : options->sampling.seed + i % request->n;
    auto generation =
        Generation::create(tokenizer_, SharedTokens(request, &request->prompts[i / request->n]), options,
                           seed, [this, submission, give_up, i](GenerationEvent event) {
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

// [engine's thread] Adds all texts of the request to the batcher, or none.
void Api::hand_over(const std::shared_ptr<Submission>& submission,
                    const std::vector<std::shared_ptr<Generation>>& generations) {
  Batcher* const batcher = batcher_.load();
  Status status;
  if (batcher == nullptr) status = Error{Code::cancelled, "server", "is shutting down"};
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
  // The refusal must be posted before the texts that were added report that they are cancelled.
  server_->post([submission, error = api_error(status.error())] { submission->answer->refused(error); });
  for (const Batcher::Id id : submission->ids) batcher->cancel(id);
}

}  // namespace tierd
