#include "tools/tierd/api/completion_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/store/json_fields.h"
#include "tools/tierd/api/api_error.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr size_t kMostStops = 64;
constexpr size_t kLongestStop = 4096;
constexpr uint32_t kMostLogprobs = 20;  // as OpenAI has it for chats

Error bad(const char* field, std::string detail) {
  return {Code::invalid_argument, kRequest, fmt::format("{}: {}", field, detail)};
}

// In an error.
std::string shown(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 48);
}

// Null counts as absent, as clients write it.
const json* find(const json& body, const char* field) {
  const auto it = body.find(field);
  return it == body.end() || it->is_null() ? nullptr : &*it;
}

// What would change the answer, were it not ignored.
Status refuse_unsupported(const json& body) {
  const auto refuse = [&](const char* field, bool asked) -> Status {
    if (!asked) return {};
    return Error{Code::unsupported, kRequest, fmt::format("{}: is not supported", field)};
  };
  const auto given = [&](const char* field) {
    const json* value = find(body, field);
    return value != nullptr && !value->empty() && *value != false && *value != 0 && *value != "";
  };
  for (const char* field : {"adaptive_target",
                            "allowed_token_ids",
                            "audio",
                            "bad_words",
                            "chat_template",
                            "chat_template_kwargs",
                            "continue_final_message",
                            "dry_multiplier",
                            "dynatemp_range",
                            "functions",
                            "grammar",
                            "guided_choice",
                            "guided_grammar",
                            "guided_json",
                            "guided_regex",
                            "image_data",
                            "json_schema",
                            "lora",
                            "min_keep",
                            "min_tokens",
                            "mirostat",
                            "post_sampling_probs",
                            "prefix",
                            "prompt_logprobs",
                            "response_fields",
                            "return_tokens",
                            "stop_token_ids",
                            "structured_outputs",
                            "suffix",
                            "t_max_predict_ms",
                            "tools",
                            "use_beam_search"}) {
    TIERD_TRY(refuse(field, given(field)));
  }
  TIERD_TRY(refuse("add_generation_prompt", body.value("add_generation_prompt", json()) == false));
  // Over the whole text, in other servers: repeat_penalty with repeat_last_n -1.
  if (given("repetition_penalty") && body["repetition_penalty"] != 1) {
    return Error{
        Code::unsupported, kRequest,
        "repetition_penalty: is not supported; repeat_penalty is, and repeat_last_n -1 for the whole text"};
  }
  if (const json* format = find(body, "response_format")) {
    TIERD_TRY(refuse("response_format", !format->is_object() || format->value("type", json()) != "text"));
  }
  return {};
}

class Reader {
 public:
  Reader(const json& body, const JsonFields& fields, const Tokenizer& tokenizer,
         const CompletionDefaults& defaults, const ChatTemplate* chat)
      : body_(body), fields_(fields), tokenizer_(tokenizer), defaults_(defaults), chat_(chat) {}

  Result<CompletionRequest> read() {
    request_.generation = defaults_.generation;
    TIERD_TRY(refuse_unsupported(body_));
    TIERD_TRY(read_sampling());
    TIERD_TRY(read_length());
    TIERD_TRY(read_stops());
    TIERD_TRY(read_output());
    TIERD_TRY(chat_ != nullptr ? read_chat_logprobs() : read_logprobs());
    TIERD_TRY(chat_ != nullptr ? read_messages() : read_prompts());
    const uint64_t texts = uint64_t{request_.n} * request_.prompts.size();
    if (texts > defaults_.most_texts)
      return bad("n", fmt::format("{} texts are asked for, at most {} at once", texts, defaults_.most_texts));
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

  // ["top_k", "temperature"], or a letter for each, as llama.cpp has it.
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

  // {"15043": 1} as OpenAI has it, [[15043, 1], ["word", false]] as llama.cpp does.
  Status read_bias(SamplerOptions& sampling) {
    const json* bias = find(body_, "logit_bias");
    if (bias == nullptr) return {};
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
        for (const uint32_t token : tokenizer_.encode(key.get<std::string>(), false, true))
          sampling.logit_bias.emplace_back(token, by);
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

  // OpenAI's two names and llama.cpp's; -1: as many as there is room for.
  Status read_length() {
    for (const char* field : {"n_predict", "max_tokens", "max_completion_tokens"}) {
      if (find(body_, field) == nullptr) continue;
      TIERD_ASSIGN(const int64_t most, whole(field, -1, -1, INT64_MAX));
      request_.generation.most_tokens = most < 0 ? UINT64_MAX : static_cast<uint64_t>(most);
    }
    TIERD_ASSIGN(request_.generation.ignore_eos, fields_.flag("ignore_eos", request_.generation.ignore_eos));
    return {};
  }

  Status read_stops() {
    const json* stop = find(body_, "stop");
    if (stop == nullptr) return {};
    request_.generation.stops.clear();
    const json list = stop->is_array() ? *stop : json::array({*stop});
    if (list.size() > kMostStops) return bad("stop", fmt::format("more than {} strings", kMostStops));
    for (const json& text : list) {
      if (!text.is_string()) return bad("stop", "expected a string or a list of strings");
      if (text.get_ref<const std::string&>().size() > kLongestStop)
        return bad("stop", fmt::format("a string is longer than {} bytes", kLongestStop));
      request_.generation.stops.push_back(text.get<std::string>());
    }
    return {};
  }

  Status read_output() {
    TIERD_ASSIGN(request_.stream, fields_.flag("stream", false));
    TIERD_ASSIGN(request_.return_progress, fields_.flag("return_progress", false));
    TIERD_ASSIGN(request_.timings_per_token, fields_.flag("timings_per_token", false));
    TIERD_ASSIGN(request_.echo, fields_.flag("echo", false));
    if (fields_.has("stream_options")) {
      TIERD_ASSIGN(const JsonFields options, fields_.object("stream_options"));
      TIERD_ASSIGN(request_.include_usage, options.flag("include_usage", false));
    }
    TIERD_ASSIGN(const int64_t n, whole("n", 1, 1, defaults_.most_texts));
    request_.n = static_cast<uint32_t>(n);
    TIERD_ASSIGN(const int64_t best_of, whole("best_of", n, 1, INT64_MAX));
    if (best_of != n) return bad("best_of", "only the same as n is supported");
    return {};
  }

  // OpenAI's name, or llama.cpp's.
  Status read_logprobs() {
    const char* const field = find(body_, "logprobs") != nullptr ? "logprobs" : "n_probs";
    if (find(body_, field) == nullptr) return {};
    TIERD_ASSIGN(const int64_t top, whole(field, 0, 0, kMostLogprobs));
    request_.generation.logprobs = static_cast<uint32_t>(top);
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
    if (request_.echo) return bad("echo", "a chat has none");
    TIERD_ASSIGN(const std::string text, read_chat(body_, *chat_));
    return add_prompt(text);
  }

  Status read_prompts() {
    const json* prompt = find(body_, "prompt");
    if (prompt == nullptr) return bad("prompt", "is missing");
    const bool several = prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
    if (!several) return add_prompt(*prompt);
    for (const json& one : *prompt) TIERD_TRY(add_prompt(one));
    return {};
  }

  // A text, or its tokens.
  Status add_prompt(const json& prompt) {
    std::vector<uint32_t> tokens;
    const Vocab& vocab = tokenizer_.vocab();
    if (prompt.is_string()) {
      tokens = tokenizer_.encode(prompt.get_ref<const std::string&>(), true, true);
    } else if (prompt.is_array()) {
      for (const json& token : prompt) {
        if (!is_token(token)) return bad("prompt", fmt::format("{} is no token of this model", shown(token)));
        tokens.push_back(token.get<uint32_t>());
      }
    } else {
      return bad("prompt", "expected a string, a list of tokens, or a list of those");
    }
    if (tokens.empty()) {
      if (vocab.bos == kNoToken) return bad("prompt", "is empty, and the model has no BOS token");
      tokens.push_back(vocab.bos);
    }
    // Before each of its texts gets a copy.
    if (tokens.size() > defaults_.context) {
      return Error{Code::no_space, "context",
                   fmt::format("{} tokens do not fit a context of {}", tokens.size(), defaults_.context)};
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
  const ChatTemplate* chat_;
  CompletionRequest request_;
};

}  // namespace

// A message's content is a text, or a list of parts, of which all are texts.
Result<std::string> read_chat(const json& body, const ChatTemplate& form) {
  TIERD_ASSIGN(const JsonFields fields, JsonFields::of(body, kRequest));
  const json* list = find(body, "messages");
  if (list == nullptr || !list->is_array()) return bad("messages", "expected a list of messages");
  std::vector<ChatMessage> messages;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string place = fmt::format("messages[{}]", i);
    TIERD_ASSIGN(const JsonFields message, JsonFields::of((*list)[i], kRequest, place + "."));
    TIERD_ASSIGN(std::string role, message.text("role"));
    if (role == "developer") role = "system";
    std::string content;
    const json* parts = find((*list)[i], "content");
    if (parts != nullptr && parts->is_array()) {
      for (const json& part : *parts) {
        TIERD_ASSIGN(const JsonFields fields_of_part, JsonFields::of(part, kRequest, place + ".content."));
        TIERD_ASSIGN(const std::string type, fields_of_part.text("type"));
        if (type != "text") {
          return Error{Code::unsupported, kRequest,
                       fmt::format("{}.content: only texts are supported", place)};
        }
        TIERD_ASSIGN(const std::string text, fields_of_part.text("text"));
        content += text;
      }
    } else {
      TIERD_ASSIGN(content, message.text("content"));
    }
    messages.push_back({std::move(role), std::move(content)});
  }
  return form.apply(messages);
}

Result<CompletionRequest> read_completion(const json& body, const Tokenizer& tokenizer,
                                          const CompletionDefaults& defaults, const ChatTemplate* chat) {
  TIERD_ASSIGN(const JsonFields fields, JsonFields::of(body, kRequest));
  return Reader(body, fields, tokenizer, defaults, chat).read();
}

}  // namespace tierd
