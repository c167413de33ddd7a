// The routes that show the model, its state and its tiers, and the route that changes a tier's capacity.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json_fields.h"
#include "core/model/text/text_stream.h"
#include "core/report/figure_json.h"
#include "tools/tierd/server/api/api.h"
#include "tools/tierd/server/api/api_reply.h"

namespace tierd {
namespace {

using nlohmann::json;

// Returns the capacity that the body asks for: "3.5GB", "60%", or bytes as a number.
Result<std::string> capacity_in(const HttpRequest& request) {
  TIERD_ASSIGN(const json body, parse_json(request.body, kRequestBody));
  TIERD_ASSIGN(const JsonFields fields, JsonFields::of(body, kRequest));
  TIERD_TRY(check_fields(body, BodyForm::capacity));
  TIERD_ASSIGN(const json* capacity, fields.member("capacity"));
  return capacity->is_number_unsigned() ? std::to_string(capacity->get<uint64_t>()) : fields.text("capacity");
}

}  // namespace

void Api::health(HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  const std::string why = [this] {
    const std::lock_guard lock(mutex_);
    if (!stuck_.empty()) return stuck_;
    return state_.quarantined.empty() ? damage_ : state_.quarantined;
  }();
  if (!why.empty()) return send(*reply, api_error(503, why));
  if (batcher_.load() != nullptr) return send(*reply, json{{"status", "ok"}});
  json body = json::parse(api_error(503, "Loading model").body());
  body.emplace("progress", loaded_.load());
  reply->send(503, kJsonType, body.dump(), {{"Retry-After", "1"}});
}

void Api::models(HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
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

void Api::props(HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  const SamplerOptions& sampling = options_.defaults.generation.sampling;
  const Vocab& vocab = tokenizer_.vocab();
  const auto piece_of = [&](uint32_t token) {
    return token == kNoToken ? "" : well_formed(vocab.pieces[token]);
  };
  const json params = {{"temperature", sampling.temperature},
                       {"top_k", sampling.top_k},
                       {"top_p", sampling.top_p},
                       {"samplers", samplers_text(sampling.samplers)},
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
                    {"modalities", {{"vision", false}, {"audio", false}}},
                    {"chat_template", vocab.chat_template},
                    {"bos_token", piece_of(vocab.bos)},
                    {"eos_token", piece_of(vocab.eos)},
                    {"build_info", "tierd"}});
}

void Api::slots(HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
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

void Api::metrics(HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  reply->send(200, "text/plain; version=0.0.4", metrics_.text(state()));
}

void Api::tiers(HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  ServiceState now = state();
  ServedTiers served{std::move(now.tiers), {}};
  for (TierLink& link : now.links) served.links.push_back({std::move(link)});
  send(*reply, figures_json(served));
}

void Api::tier_capacity(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  const std::string name(tier_in(request.path));
  const std::vector<ServedTier> tiers = state().tiers;
  const auto tier = std::ranges::find(tiers, name, &ServedTier::name);
  if (tier == tiers.end()) {
    return send(*reply,
                api_error(404, fmt::format("there is no tier '{}'", well_formed(name.substr(0, 200)))));
  }
  if (!tier->capacity_bytes)
    return send(*reply, api_error(400, fmt::format("the capacity of tier '{}' cannot be set", name)));
  read_apart(
      reply, [asked = std::move(request)] { return capacity_in(asked); },
      [this, name, reply](const std::string& capacity) { set_capacity(name, capacity, reply); });
}

void Api::set_capacity(const std::string& name, const std::string& capacity,
                       const std::shared_ptr<HttpReply>& reply) {
  const bool left = desk_.try_leave([this, name, capacity, reply] {
    const Result<CapacityChange> change =
        batcher_.load() != nullptr
            ? set_capacity_(name, capacity)
            : Result<CapacityChange>(Error{Code::cancelled, "server", "is shutting down"});
    server_->post([name, change, reply] {
      if (!change.ok()) {
        ApiError error = api_error(change.error());
        if (error.status == 400) error.param = "capacity";
        return send(*reply, error);
      }
      send(*reply, json{{"tier", name},
                        {"old_capacity_bytes", change->from_bytes},
                        {"capacity_bytes", change->to_bytes},
                        {"used_bytes", change->used_bytes},
                        {"raised_to_least", change->raised_to_least},
                        {"loss", change->loss}});
    });
  });
  if (!left) send(*reply, api_error(429, "too many requests wait"));
}

}  // namespace tierd
