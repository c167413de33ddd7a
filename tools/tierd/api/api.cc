#include "tools/tierd/api/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/log.h"
#include "core/store/json_fields.h"
#include "tools/tierd/api/api_error.h"
#include "tools/tierd/api/completion_answer.h"

namespace tierd {
namespace {

using nlohmann::json;

void send(HttpReply& reply, const json& object) {
  reply.send(200, kJsonType, object.dump(-1, ' ', false, json::error_handler_t::replace));
}

void send(HttpReply& reply, const ApiError& error) {
  HttpHeaders headers;
  if (error.status == 401) headers.emplace_back("WWW-Authenticate", "Bearer");
  if (error.status == 429 || error.status == 503) headers.emplace_back("Retry-After", "1");
  reply.send(error.status, kJsonType, error.body(), std::move(headers));
}

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

// In a time that does not tell how much of them is equal.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned char differs = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    differs |= static_cast<unsigned char>(a[i] ^ (b.empty() ? 0 : b[i % b.size()]));
  return differs == 0;
}

Result<json> body_of(const HttpRequest& request) {
  return parse_json(request.body, kRequest);
}

constexpr std::string_view kTiers = "/v1/tiers/";
constexpr std::string_view kOfATier = "/capacity";

// Returns the tier that "/v1/tiers/{tier}/capacity" names. It is empty for another path.
std::string_view tier_in(std::string_view path) {
  const bool fits =
      path.starts_with(kTiers) && path.ends_with(kOfATier) && path.size() > kTiers.size() + kOfATier.size();
  return fits ? path.substr(kTiers.size(), path.size() - kTiers.size() - kOfATier.size()) : "";
}

// "3.5GB", "60%", or bytes as a number.
Result<std::string> capacity_in(const HttpRequest& request) {
  TIERD_ASSIGN(const json body, body_of(request));
  TIERD_ASSIGN(const JsonFields fields, JsonFields::of(body, kRequest));
  if (fields.has("capacity") && body["capacity"].is_number_unsigned())
    return std::to_string(body["capacity"].get<uint64_t>());
  return fields.text("capacity");
}

}  // namespace

// Texts that one client waits for.
struct Api::Submission {
  std::string id;  // of the request
  std::shared_ptr<CompletionAnswer> answer;
  std::vector<Batcher::Id> ids;  // [engine's thread]
  bool cancelled = false;        // [server's thread]
};

Api::Api(Options options, const Tokenizer& tokenizer, EngineDesk& desk)
    : options_(std::move(options)),
      metrics_(options_.sites),
      tokenizer_(tokenizer),
      desk_(desk),
      random_(std::random_device()()) {}

void Api::set_state(ServiceState state) {
  const std::lock_guard lock(mutex_);
  state_ = std::move(state);
}

ServiceState Api::state() {
  const std::lock_guard lock(mutex_);
  return state_;
}

bool Api::authorized(const HttpRequest& request) const {
  if (options_.keys.empty()) return true;
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view given = request.api_key;
  if (given.empty() && request.authorization.starts_with(kBearer))
    given = std::string_view(request.authorization).substr(kBearer.size());
  bool found = false;
  for (const std::string& key : options_.keys) found |= same_secret(given, key);
  return found;
}

struct Api::Entry {
  const char* path;
  const char* method;
  Route route;
  bool open = false;  // without a key
  bool while_loading = false;

  bool takes(std::string_view of) const {
    return of == path || (route == &Api::tier_capacity && !tier_in(of).empty());
  }
};

std::span<const Api::Entry> Api::entries() {
  static constexpr Entry kEntries[] = {
      {"/health", "GET", &Api::health, true, true},
      {"/v1/health", "GET", &Api::health, true, true},
      {"/v1/models", "GET", &Api::models, true, true},
      {"/models", "GET", &Api::models, true, true},
      {"/props", "GET", &Api::props},
      {"/slots", "GET", &Api::slots},
      {"/metrics", "GET", &Api::metrics},
      {"/v1/tiers", "GET", &Api::tiers},
      {"/v1/tiers/{tier}/capacity", "POST", &Api::tier_capacity},
      {"/tokenize", "POST", &Api::tokenize, false, true},
      {"/detokenize", "POST", &Api::detokenize, false, true},
      {"/v1/embeddings", "POST", &Api::embeddings},
      {"/embeddings", "POST", &Api::embeddings},
      {"/v1/completions", "POST", &Api::completions},
      {"/v1/chat/completions", "POST", &Api::chat_completions},
      {"/apply-template", "POST", &Api::apply_template, false, true},
  };
  return kEntries;
}

const Api::Entry* Api::entry_for(const HttpRequest& request) {
  // Whoever only asks whether there is something gets what GET gets, without the body.
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  for (const Entry& entry : entries()) {
    if (entry.takes(request.path) && method == entry.method) return &entry;
  }
  return nullptr;
}

bool Api::admit(const HttpRequest& head, HttpReply& reply) {
  const auto refuse = [&](unsigned status, std::string why) {
    send(reply, api_error(status, std::move(why)));
    return false;
  };
  if (auto stranger = options_.origins.refusal(head)) return refuse(403, std::move(*stranger));
  if (head.method == "OPTIONS" && options_.origins.may_read(head.origin)) {
    reply.send(204, {}, {});
    return false;
  }
  const Entry* const entry = entry_for(head);
  if (entry == nullptr) {
    const bool known = std::any_of(entries().begin(), entries().end(),
                                   [&](const Entry& other) { return other.takes(head.path); });
    return known ? refuse(405, fmt::format("{} does not take {}", head.path, head.method))
                 : refuse(404, fmt::format("there is no {}", well_formed(head.path.substr(0, 200))));
  }
  if (!entry->open && !authorized(head)) return refuse(401, "the API key is missing or wrong");
  if (!is_json(head)) return refuse(415, "the body's type is not application/json (curl --json)");
  if (!entry->while_loading && batcher_.load() == nullptr) return refuse(503, "Loading model");
  return true;
}

void Api::handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  (this->*entry_for(request)->route)(request, reply);
}

void Api::answered(const HttpRecord& record) {
  const bool asks_how_it_is =
      record.status == 200 && (record.path.ends_with("/health") || record.path == "/metrics");
  if (options_.quiet || asks_how_it_is) return;
  const double ms = std::chrono::duration<double, std::milli>(record.took).count();
  const std::string path = well_formed(record.path.substr(0, 200));
  const std::string what = record.method.empty() ? "no HTTP" : record.method + " " + path;
  const LogField fields[] = {{"request", record.id},
                             {"method", record.method},
                             {"path", path},
                             {"status", uint64_t{record.status}},
                             {"ms", ms}};
  say(fmt::format("{} {} in {:.1f} ms{} [{}]", what, record.status, ms,
                  record.heard ? "" : ", the client left before its end", record.id),
      fields);
}

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

std::string Api::error_body(unsigned status, const std::string& message) const {
  return api_error(status, message).body();
}

void Api::health(const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  const std::string why = [this] {
    const std::lock_guard lock(mutex_);
    return stuck_;
  }();
  if (!why.empty()) return send(*reply, api_error(503, why));
  if (batcher_.load() != nullptr) return send(*reply, json{{"status", "ok"}});
  json body = json::parse(api_error(503, "Loading model").body());
  body["progress"] = loaded_.load();
  reply->send(503, kJsonType, body.dump(), {{"Retry-After", "1"}});
}

void Api::models(const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  const ServedModel& model = options_.model;
  const json one = {{"id", model.name},
                    {"object", "model"},
                    {"created", model.started},
                    {"owned_by", "tierd"},
                    {"meta",
                     {{"n_vocab", tokenizer_.vocab().pieces.size()},
                      {"n_ctx", model.context},
                      {"n_ctx_train", model.trained_context},
                      {"n_embd", model.width},
                      {"size", model.bytes}}}};
  send(*reply, json{{"object", "list"}, {"data", json::array({one})}});
}

void Api::props(const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  const SamplerOptions& sampling = options_.defaults.generation.sampling;
  const json params = {{"temperature", sampling.temperature},
                       {"top_k", sampling.top_k},
                       {"top_p", sampling.top_p},
                       {"min_p", sampling.min_p},
                       {"typical_p", sampling.typical_p},
                       {"top_n_sigma", sampling.top_n_sigma},
                       {"xtc_probability", sampling.xtc_probability},
                       {"xtc_threshold", sampling.xtc_threshold},
                       {"repeat_last_n", sampling.penalties.repeat_last_n},
                       {"repeat_penalty", sampling.penalties.repeat_penalty},
                       {"presence_penalty", sampling.penalties.presence_penalty},
                       {"frequency_penalty", sampling.penalties.frequency_penalty}};
  send(*reply, json{{"default_generation_settings", {{"n_ctx", options_.model.context}, {"params", params}}},
                    {"total_slots", options_.model.sequences},
                    {"model_alias", options_.model.name},
                    {"model_path", options_.model.path},
                    {"build_info", "tierd"}});
}

void Api::slots(const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  const std::vector<Batcher::SequenceState> sequences = state().sequences;
  json list = json::array();
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Batcher::SequenceState& state = sequences[i];
    list.push_back({{"id", i},
                    {"n_ctx", options_.model.context},
                    {"is_processing", state.text.has_value()},
                    {"in_prompt", state.in_prompt},
                    {"n_prompt_tokens", state.prompt_tokens},
                    {"n_tokens", state.tokens}});
  }
  send(*reply, list);
}

void Api::metrics(const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  reply->send(200, "text/plain; version=0.0.4", metrics_.text(state()));
}

void Api::tiers(const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  const ServiceState now = state();
  json list = json::array();
  for (const ServedTier& tier : options_.tiers) {
    json& of = list.emplace_back(json{{"tier", tier.name},
                                      {"kind", tier.kind},
                                      {"count", tier.count},
                                      {"over", tier.over.empty() ? json() : json(tier.over)},
                                      {"capacity_bytes", nullptr},
                                      {"used_bytes", tier.bytes}});
    const auto state = std::ranges::find(now.tiers, tier.name, &ServiceState::Tier::name);
    if (!tier.has_capacity || state == now.tiers.end()) continue;
    of["capacity_bytes"] = state->budget_bytes;
    of["used_bytes"] = state->used_bytes;
    of["neurons"] = {{"hits", state->counters.hits},
                     {"staged", state->counters.staged},
                     {"misses", state->counters.misses},
                     {"evictions", state->counters.evictions}};
  }
  json links = json::array();
  for (const TierLink& link : now.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"messages", link.counters.messages},
                     {"neurons", link.counters.neurons},
                     {"bytes", link.counters.bytes}});
  }
  send(*reply, json{{"tiers", std::move(list)}, {"links", std::move(links)}});
}

void Api::tier_capacity(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  const std::string name(tier_in(request.path));
  const auto tier = std::find_if(options_.tiers.begin(), options_.tiers.end(),
                                 [&](const ServedTier& other) { return other.name == name; });
  if (tier == options_.tiers.end()) {
    return send(*reply,
                api_error(404, fmt::format("there is no tier '{}'", well_formed(name.substr(0, 200)))));
  }
  if (!tier->has_capacity)
    return send(*reply, api_error(400, fmt::format("tier '{}' has no capacity to be set", name)));
  const auto capacity = capacity_in(request);
  if (!capacity.ok()) return send(*reply, api_error(capacity.error()));
  const bool left = desk_.try_leave([this, name, capacity = *capacity, reply] {
    const Result<CapacityChange> change =
        batcher_.load() != nullptr
            ? set_capacity_(name, capacity)
            : Result<CapacityChange>(Error{Code::cancelled, "server", "is going down"});
    server_->post([name, change, reply] {
      if (!change.ok()) return send(*reply, api_error(change.error()));
      send(*reply, json{{"tier", name},
                        {"old_capacity_bytes", change->from_bytes},
                        {"capacity_bytes", change->to_bytes},
                        {"used_bytes", change->used_bytes},
                        {"raised_to_least", change->raised_to_least}});
    });
  });
  if (!left) send(*reply, api_error(429, "too many requests wait"));
}

void Api::tokenize(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  const auto read = [&]() -> Result<json> {
    TIERD_ASSIGN(const json body, body_of(request));
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
    return json{{"tokens", std::move(tokens)}};
  };
  const auto answer = read();
  answer.ok() ? send(*reply, *answer) : send(*reply, api_error(answer.error()));
}

void Api::detokenize(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  const auto read = [&]() -> Result<json> {
    TIERD_ASSIGN(const json body, body_of(request));
    TIERD_ASSIGN(const JsonFields fields, JsonFields::of(body, kRequest));
    TIERD_ASSIGN(const std::vector<uint32_t> tokens, fields.u32_list("tokens"));
    for (const uint32_t token : tokens) {
      if (token < tokenizer_.vocab().pieces.size()) continue;
      return fields.error(Code::invalid_argument, "tokens",
                          fmt::format("{} is no token of this model", token));
    }
    return json{{"content", well_formed(tokenizer_.decode(tokens))}};
  };
  const auto answer = read();
  answer.ok() ? send(*reply, *answer) : send(*reply, api_error(answer.error()));
}

void Api::embeddings(const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  send(*reply, api_error(501, "this model makes texts, no embeddings"));
}

void Api::completions(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  complete(request, reply, nullptr);
}

void Api::chat_completions(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  if (!options_.chat.ok()) return send(*reply, api_error(options_.chat.error()));
  complete(request, reply, &*options_.chat);
}

void Api::apply_template(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  if (!options_.chat.ok()) return send(*reply, api_error(options_.chat.error()));
  const auto body = body_of(request);
  if (!body.ok()) return send(*reply, api_error(body.error()));
  const auto text = read_chat(*body, *options_.chat);
  if (!text.ok()) return send(*reply, api_error(text.error()));
  send(*reply, json{{"prompt", *text}});
}

void Api::complete(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply,
                   const ChatTemplate* chat) {
  const auto body = body_of(request);
  if (!body.ok()) return send(*reply, api_error(body.error()));
  const auto completion = read_completion(*body, tokenizer_, options_.defaults, chat);
  if (!completion.ok()) return send(*reply, api_error(completion.error()));
  submit(request.id, *completion, reply, chat != nullptr);
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
