#include "tools/tierd/server/api/completion_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/json_fields.h"
#include "tools/tierd/server/api/api_error.h"
#include "tools/tierd/server/api/chat_request.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr size_t kMostStops = 64;
constexpr size_t kLongestStop = 4096;
constexpr size_t kLongestBiased = 4096;  // bytes of a text whose tokens get a bias
constexpr uint32_t kMostLogprobs = 20;   // OpenAI's limit for chats
// Measured bytes of: a text with its events; a token that penalties count; a token of an echo in JSON.
constexpr uint64_t kBytesOfText = 8192;
constexpr uint64_t kBytesOfPenalty = 64;
constexpr uint64_t kBytesOfEcho = 16;

Error bad(const char* field, const std::string& detail) {
  return field_error(field, detail);
}

// Returns a field of the body, or NULL where it is absent or null.
const json* find(const json& body, const char* field) {
  const auto it = body.find(field);
  return it == body.end() || it->is_null() ? nullptr : &*it;
}

class Reader {
 public:
  Reader(const json& body, const JsonFields& fields, const Tokenizer& tokenizer,
         const CompletionDefaults& defaults, BodyForm form, const ChatTemplate* chat)
      : body_(body), fields_(fields), tokenizer_(tokenizer), defaults_(defaults), form_(form), chat_(chat) {}

  Result<CompletionRequest> read() {
    request_.generation = defaults_.generation;
    TIERD_TRY(check_fields(body_, form_));
    if (find(body_, "model") != nullptr) TIERD_TRY(fields_.text("model"));
    TIERD_TRY(read_sampling());
    TIERD_TRY(read_length());
    TIERD_TRY(read_stops());
    TIERD_TRY(read_output());
    TIERD_TRY(read_n_probs());
    if (form_ == BodyForm::completion) TIERD_TRY(read_logprobs());
    if (form_ == BodyForm::chat) TIERD_TRY(read_chat_logprobs());
    TIERD_TRY(chat_ != nullptr ? read_messages() : read_prompts());
    return std::move(request_);
  }

 private:
  Status take(const char* field, float& option) {
    TIERD_ASSIGN(option, fields_.f32(field, option));
    return {};
  }

  Status read_sampling() {
    SamplerOptions& sampling = request_.generation.sampling;
    PenaltyOptions& penalties = sampling.penalties;
    for (const auto& [field, option] :
         {std::pair("temperature", &sampling.temperature), std::pair("top_p", &sampling.top_p),
          std::pair("min_p", &sampling.min_p), std::pair("typical_p", &sampling.typical_p),
          std::pair("top_n_sigma", &sampling.top_n_sigma),
          std::pair("xtc_probability", &sampling.xtc_probability),
          std::pair("xtc_threshold", &sampling.xtc_threshold),
          std::pair("repeat_penalty", &penalties.repeat_penalty),
          std::pair("presence_penalty", &penalties.presence_penalty),
          std::pair("frequency_penalty", &penalties.frequency_penalty)}) {
      TIERD_TRY(take(field, *option));
    }
    TIERD_ASSIGN(const int64_t top_k, whole("top_k", sampling.top_k, -1, UINT32_MAX));
    sampling.top_k = static_cast<uint32_t>(std::max<int64_t>(top_k, 0));
    TIERD_ASSIGN(const int64_t last_n, whole("repeat_last_n", penalties.repeat_last_n, -1, INT32_MAX));
    penalties.repeat_last_n = last_n;
    TIERD_ASSIGN(const int64_t seed, whole("seed", -1, -1, INT64_MAX));
    request_.random_seed = seed < 0;
    if (seed >= 0) sampling.seed = static_cast<uint64_t>(seed);
    TIERD_TRY(read_samplers(sampling));
    TIERD_TRY(read_bias(sampling));
    const auto sound = Sampler::create(sampling);
    if (!sound.ok()) return bad(sound.error().origin.c_str(), sound.error().detail);
    return {};
  }

  // Reads ["top_k", "temperature"], or llama.cpp's text with a letter for each.
  Status read_samplers(SamplerOptions& sampling) {
    const json* samplers = find(body_, "samplers");
    if (samplers == nullptr) return {};
    std::string text;
    if (samplers->is_string()) {
      text = samplers->get<std::string>();
    } else if (samplers->is_array() &&
               std::ranges::all_of(*samplers, [](const json& name) { return name.is_string(); })) {
      for (const json& name : *samplers) text += name.get<std::string>() + ";";
    } else {
      return bad("samplers", "expected a list of names, or a letter for each");
    }
    auto steps = parse_samplers(text, "samplers");
    if (!steps.ok()) return bad("samplers", steps.error().detail);
    sampling.samplers = std::move(*steps);
    return {};
  }

  // Reads OpenAI's form {"15043": 1}, or llama.cpp's form [[15043, 1], ["word", false]].
  Status read_bias(SamplerOptions& sampling) {
    const json* bias = find(body_, "logit_bias");
    if (bias == nullptr) return {};
    const size_t most = sampling.logit_bias.size() + tokenizer_.vocab().pieces.size();
    if (bias->size() > tokenizer_.vocab().pieces.size())
      return bad("logit_bias", "has more entries than the model has tokens");
    if (!bias->is_object() && !bias->is_array())
      return bad("logit_bias", "expected an object or a list of pairs");
    const auto add = [&](const json& key, const json& value) -> Status {
      float by = 0;
      if (value == false) {
        by = -std::numeric_limits<float>::infinity();
      } else if (value.is_number() && std::isfinite(value.get<float>())) {
        by = value.get<float>();
      } else {
        return bad("logit_bias", fmt::format("of {}: expected a number or false", shown(key)));
      }
      if (key.is_string() && bias->is_array()) {
        const std::string& text = key.get_ref<const std::string&>();
        if (text.size() > kLongestBiased)
          return bad("logit_bias", fmt::format("a text is longer than {} bytes", kLongestBiased));
        for (const uint32_t token : tokenizer_.encode(text, false, true))
          sampling.logit_bias.emplace_back(token, by);
        if (sampling.logit_bias.size() > most)
          return bad("logit_bias", "its texts have more tokens than the model");
        return {};
      }
      json token = key;
      if (key.is_string()) {
        const std::string& text = key.get_ref<const std::string&>();
        const bool digits =
            !text.empty() && text.size() <= 10 && text.find_first_not_of("0123456789") == std::string::npos;
        if (digits) token = std::stoull(text);
      }
      if (!is_token(token)) return bad("logit_bias", fmt::format("{} is no token of this model", shown(key)));
      sampling.logit_bias.emplace_back(token.get<uint32_t>(), by);
      return {};
    };
    for (const auto& [key, value] : bias->items()) {
      if (bias->is_object()) {
        TIERD_TRY(add(json(key), value));
      } else if (value.is_array() && value.size() == 2) {
        TIERD_TRY(add(value[0], value[1]));
      } else {
        return bad("logit_bias", "expected pairs [token, bias]");
      }
    }
    return {};
  }

  // Reads OpenAI's two names and llama.cpp's. -1: until the context is full.
  Status read_length() {
    TIERD_ASSIGN(const std::optional<int64_t> most,
                 one_of({"n_predict", "max_tokens", "max_completion_tokens"}, -1, INT64_MAX));
    if (most) request_.generation.most_tokens = *most < 0 ? UINT64_MAX : static_cast<uint64_t>(*most);
    TIERD_ASSIGN(request_.generation.ignore_eos, fields_.flag("ignore_eos", request_.generation.ignore_eos));
    return {};
  }

  // Reads a number that has several names. Returns no value where none of them is given.
  Result<std::optional<int64_t>> one_of(std::initializer_list<const char*> names, int64_t least,
                                        int64_t most) const {
    std::optional<int64_t> found;
    const char* first = nullptr;
    for (const char* name : names) {
      if (find(body_, name) == nullptr) continue;
      TIERD_ASSIGN(const int64_t value, whole(name, 0, least, most));
      if (found && *found != value) return bad(name, fmt::format("differs from {}", first));
      found = value;
      first = name;
    }
    return found;
  }

  Status read_stops() {
    const json* stop = find(body_, "stop");
    if (stop == nullptr) return {};
    const json list = stop->is_array() ? *stop : json::array({*stop});
    if (list.size() > kMostStops) return bad("stop", fmt::format("more than {} strings", kMostStops));
    std::vector<std::string> stops;
    for (const json& text : list) {
      if (!text.is_string()) return bad("stop", "expected a string or a list of strings");
      if (text.get_ref<const std::string&>().size() > kLongestStop)
        return bad("stop", fmt::format("a string is longer than {} bytes", kLongestStop));
      stops.push_back(text.get<std::string>());
    }
    // An empty list keeps the stop strings of the command line, as in llama-server.
    if (!stops.empty()) request_.generation.stops = std::move(stops);
    return {};
  }

  Status read_output() {
    TIERD_ASSIGN(request_.stream, fields_.flag("stream", false));
    TIERD_ASSIGN(request_.return_progress, fields_.flag("return_progress", false));
    TIERD_ASSIGN(request_.timings_per_token, fields_.flag("timings_per_token", false));
    TIERD_ASSIGN(request_.return_tokens, fields_.flag("return_tokens", false));
    TIERD_ASSIGN(request_.echo, fields_.flag("echo", false));
    if (fields_.has("stream_options")) {
      TIERD_ASSIGN(const JsonFields options, fields_.object("stream_options"));
      TIERD_TRY(
          check_fields(body_["stream_options"], "stream_options.", {"include_usage", "include_obfuscation"}));
      TIERD_ASSIGN(request_.include_usage, options.flag("include_usage", false));
    }
    TIERD_ASSIGN(const std::optional<int64_t> n, one_of({"n", "n_cmpl"}, 1, defaults_.most_texts));
    request_.n = static_cast<uint32_t>(n.value_or(1));
    TIERD_ASSIGN(const int64_t best_of, whole("best_of", request_.n, 1, INT64_MAX));
    if (best_of != request_.n) return bad("best_of", "only the same as n is supported");
    return {};
  }

  // OpenAI's field: 0 requests the logprobs of the chosen tokens alone.
  Status read_logprobs() {
    const json* const logprobs = find(body_, "logprobs");
    const bool asked = logprobs != nullptr && *logprobs != false;
    if (!asked) return {};
    TIERD_ASSIGN(const int64_t top, whole("logprobs", 0, 0, kMostLogprobs));
    request_.generation.logprobs = static_cast<uint32_t>(top);
    request_.generation.prompt_logprobs = request_.echo;
    return {};
  }

  // llama.cpp's field: 0 requests no logprobs.
  Status read_n_probs() {
    const bool native = form_ == BodyForm::native;
    TIERD_ASSIGN(const std::optional<int64_t> n, native ? one_of({"n_probs", "logprobs"}, 0, kMostLogprobs)
                                                        : one_of({"n_probs"}, 0, kMostLogprobs));
    if (n.value_or(0) == 0) return {};
    request_.generation.logprobs = static_cast<uint32_t>(*n);
    request_.generation.prompt_logprobs = request_.echo;
    return {};
  }

  Status read_chat_logprobs() {
    TIERD_ASSIGN(const bool asked, fields_.flag("logprobs", false));
    TIERD_ASSIGN(const int64_t top, whole("top_logprobs", 0, 0, kMostLogprobs));
    if (top != 0 && !asked) return bad("top_logprobs", "needs logprobs to be true");
    if (asked) request_.generation.logprobs = static_cast<uint32_t>(top);
    return {};
  }

  Status read_messages() {
    TIERD_ASSIGN(const std::string text, read_chat(body_, *chat_));
    return add_prompt(text);
  }

  Status read_prompts() {
    const json* prompt = find(body_, "prompt");
    if (prompt == nullptr) return bad("prompt", "is missing");
    const bool several = prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
    const uint64_t texts = uint64_t{request_.n} * (several ? prompt->size() : 1);
    if (texts > defaults_.most_texts) {
      return bad(request_.n == 1 ? "prompt" : "n",
                 fmt::format("{} texts are asked for, at most {} at once", texts, defaults_.most_texts));
    }
    if (!several) return add_prompt(*prompt);
    for (const json& one : *prompt) TIERD_TRY(add_prompt(one));
    return {};
  }

  // Adds a prompt, which is a text or a list of tokens.
  Status add_prompt(const json& prompt) {
    if (request_.too_long) return {};
    if (prompt.is_string()) return add_text(prompt.get_ref<const std::string&>());
    if (!prompt.is_array()) return bad("prompt", "expected a string, a list of tokens, or a list of those");
    std::vector<uint32_t> tokens;
    for (const json& token : prompt) {
      if (!is_token(token)) return bad("prompt", fmt::format("{} is no token of this model", shown(token)));
      tokens.push_back(token.get<uint32_t>());
    }
    return add_tokens(std::move(tokens));
  }

  Status add_text(const std::string& text) {
    if (defaults_.bound != nullptr) {
      const uint64_t least = defaults_.bound->least_tokens(text);
      if (least > defaults_.context) {
        request_.too_long = TooLongPrompt{least, true};
        return {};
      }
    }
    return add_tokens(tokenizer_.encode(text, true, true));
  }

  Status add_tokens(std::vector<uint32_t> tokens) {
    const Vocab& vocab = tokenizer_.vocab();
    if (tokens.empty()) {
      if (vocab.bos == kNoToken) return bad("prompt", "is empty, and the model has no BOS token");
      tokens.push_back(vocab.bos);
    }
    if (tokens.size() > defaults_.context) {
      request_.too_long = TooLongPrompt{tokens.size(), false};
      return {};
    }
    request_.prompts.push_back(std::move(tokens));
    return {};
  }

  bool is_token(const json& value) const {
    return value.is_number_integer() && value >= 0 && value < tokenizer_.vocab().pieces.size();
  }

  Result<int64_t> whole(const char* field, int64_t fallback, int64_t least, int64_t most) const {
    const json* value = find(body_, field);
    if (value == nullptr) return fallback;
    const bool fits = value->is_number_integer() &&
                      !(value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{INT64_MAX});
    if (!fits || value->get<int64_t>() < least || value->get<int64_t>() > most) {
      return bad(field,
                 fmt::format("found {}, expected a whole number from {} to {}", shown(*value), least, most));
    }
    return value->get<int64_t>();
  }

  const json& body_;
  const JsonFields& fields_;
  const Tokenizer& tokenizer_;
  const CompletionDefaults& defaults_;
  BodyForm form_;
  const ChatTemplate* chat_;
  CompletionRequest request_;
};

}  // namespace

Result<CompletionRequest> read_completion(const json& body, const Tokenizer& tokenizer,
                                          const CompletionDefaults& defaults, BodyForm form,
                                          const ChatTemplate* chat) {
  TIERD_ASSIGN(const JsonFields fields, JsonFields::of(body, kRequest));
  return Reader(body, fields, tokenizer, defaults, form, chat).read();
}

uint64_t request_bytes(const CompletionRequest& request) {
  const GenerationOptions& options = request.generation;
  uint64_t bytes = options.sampling.logit_bias.size() * sizeof(options.sampling.logit_bias[0]);
  uint64_t stops = 0;
  for (const std::string& stop : options.stops) stops += stop.size() + sizeof stop;
  bytes += stops;
  const PenaltyOptions& penalties = options.sampling.penalties;
  for (const std::vector<uint32_t>& prompt : request.prompts) {
    bytes += prompt.size() * sizeof(uint32_t);
    const uint64_t last =
        penalties.repeat_last_n < 0 ? prompt.size() : static_cast<uint64_t>(penalties.repeat_last_n);
    uint64_t each = kBytesOfText + stops;
    if (penalties.active()) each += kBytesOfPenalty * std::min<uint64_t>(prompt.size(), last);
    if (request.echo) each += kBytesOfEcho * prompt.size();
    bytes += request.n * each;
  }
  return bytes;
}

}  // namespace tierd
