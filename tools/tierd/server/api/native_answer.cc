#include "tools/tierd/server/api/native_answer.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/text/text_stream.h"
#include "tools/tierd/server/api/answer_json.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr int kUnboundSlot = -1;  // a text is bound to no slot

json token_json(uint32_t token, const std::string& bytes, double logprob) {
  return {{"id", token}, {"token", well_formed(bytes)}, {"bytes", bytes_json(bytes)}, {"logprob", logprob}};
}

json bias_json(const SamplerOptions& sampling) {
  json list = json::array();
  for (const auto& [token, bias] : sampling.logit_bias)
    list.push_back({{"token", token}, {"bias", std::isinf(bias) ? json(false) : json(bias)}});
  return list;
}

// Returns the settings of the text's request.
json settings_json(const CompletionRequest& request) {
  const GenerationOptions& options = request.generation;
  const SamplerOptions& sampling = options.sampling;
  const int64_t most =
      options.most_tokens > uint64_t{INT64_MAX} ? -1 : static_cast<int64_t>(options.most_tokens);
  json samplers = json::array();
  for (const SamplerStep step : sampling.samplers) samplers.push_back(samplers_text({step}));
  return {{"seed", request.random_seed ? json(-1) : json(sampling.seed)},
          {"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"top_n_sigma", sampling.top_n_sigma},
          {"xtc_probability", sampling.xtc_probability},
          {"xtc_threshold", sampling.xtc_threshold},
          {"typical_p", sampling.typical_p},
          {"repeat_last_n", sampling.penalties.repeat_last_n},
          {"repeat_penalty", sampling.penalties.repeat_penalty},
          {"presence_penalty", sampling.penalties.presence_penalty},
          {"frequency_penalty", sampling.penalties.frequency_penalty},
          {"samplers", std::move(samplers)},
          {"logit_bias", bias_json(sampling)},
          {"stop", options.stops},
          {"max_tokens", most},
          {"n_predict", most},
          {"ignore_eos", options.ignore_eos},
          {"n_probs", options.logprobs.value_or(0)},
          {"stream", request.stream},
          {"timings_per_token", request.timings_per_token}};
}

}  // namespace

json native_part(const NativePart& part) {
  return {{"index", part.index},
          {"content", part.content},
          {"tokens", part.tokens},
          {"stop", false},
          {"id_slot", kUnboundSlot},
          {"tokens_predicted", part.times.generated_tokens},
          {"tokens_evaluated", part.times.prompt_tokens}};
}

json native_text(const NativeText& text, const EndEvent& end, const CompletionRequest& request,
                 const std::string& prompt) {
  return {{"index", text.index},
          {"content", text.content},
          {"tokens", text.tokens},
          {"id_slot", kUnboundSlot},
          {"stop", true},
          {"model", text.model},
          {"tokens_predicted", end.times.generated_tokens},
          {"tokens_evaluated", end.times.prompt_tokens},
          {"generation_settings", settings_json(request)},
          {"prompt", prompt},
          {"has_new_line", text.has_new_line},
          {"truncated", end.why == EndEvent::Why::context_full},
          {"stop_type", stop_type_of(end)},
          {"stopping_word", end.stop},
          {"tokens_cached", end.times.prompt_tokens + end.times.generated_tokens},
          {"timings", timings_json(end.times)}};
}

json native_probabilities(std::span<const PromptTokenEvent> tokens, const Tokenizer& tokenizer) {
  json list = json::array();
  for (const PromptTokenEvent& token : tokens) {
    if (!token.logprobs) continue;
    json object = token_json(token.token, token.bytes, token.logprobs->chosen.logprob);
    json& top = object["top_logprobs"] = json::array();
    for (const TokenLogprob& other : token.logprobs->top)
      top.push_back(token_json(other.token, tokenizer.piece(other.token, true), other.logprob));
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace tierd
