#include "tools/tierd/server/api/request_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/model/text/text_stream.h"
#include "tools/tierd/server/api/api_error.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr unsigned bit(BodyForm form) {
  return 1u << static_cast<unsigned>(form);
}
constexpr unsigned kCompletion = bit(BodyForm::completion), kNative = bit(BodyForm::native),
                   kChat = bit(BodyForm::chat), kChatText = bit(BodyForm::chat_text);
constexpr unsigned kTexts = kCompletion | kNative | kChat;
constexpr unsigned kAll = ~0u;

// The forms that read a field. /apply-template accepts the body of a chat and ignores its sampling.
struct Read {
  std::string_view name;
  unsigned by = kTexts | kChatText;
};
constexpr Read kRead[] = {
    {"add_generation_prompt", kChat | kChatText},
    {"add_special", bit(BodyForm::tokenize)},
    {"best_of"},
    {"capacity", bit(BodyForm::capacity)},
    {"content", bit(BodyForm::tokenize)},
    {"continue_final_message", kChat | kChatText},
    {"echo", kCompletion},
    {"frequency_penalty"},
    {"ignore_eos"},
    {"logit_bias"},
    {"logprobs"},
    {"max_completion_tokens"},
    {"max_tokens"},
    {"messages", kChat | kChatText},
    {"min_p"},
    {"model", kAll},
    {"n"},
    {"n_cmpl"},
    {"n_predict"},
    {"n_probs"},
    {"parse_special", bit(BodyForm::tokenize)},
    {"presence_penalty"},
    {"prompt", kCompletion | kNative},
    {"repeat_last_n"},
    {"repeat_penalty"},
    {"return_progress"},
    {"return_tokens", kNative},
    {"samplers"},
    {"seed"},
    {"stop"},
    {"stream"},
    {"stream_options"},
    {"temperature"},
    {"timings_per_token"},
    {"tokens", bit(BodyForm::detokenize)},
    {"top_k"},
    {"top_logprobs", kChat | kChatText},
    {"top_n_sigma"},
    {"top_p"},
    {"typical_p"},
    {"with_pieces", bit(BodyForm::tokenize)},
    {"xtc_probability"},
    {"xtc_threshold"},
};

// Fields that change no text, whatever their value.
constexpr std::string_view kHarmless[] = {
    // for a service's own records
    "metadata", "prompt_cache_key", "prompt_cache_retention", "request_id", "safety_identifier",
    "service_tier", "store", "user",
    // speed alone: a row's bits depend on no cache, slot, order or guess
    "backend_sampling", "cache_prompt", "id_slot", "n_cache_reuse", "prediction", "priority", "slot_id",
    "speculative.n_max", "speculative.n_min", "speculative.p_min",
    // shifting a full context: tierd ends the text there
    "n_discard", "n_keep",
    // parameters of samplers and tools, whose own fields are refused
    "adaptive_decay", "dry_allowed_length", "dry_base", "dry_penalty_last_n", "dry_sequence_breakers",
    "dynatemp_exponent", "guided_decoding_backend", "guided_whitespace_pattern", "mirostat_eta",
    "mirostat_tau", "parallel_tool_calls"};

// Fields that are not supported. Their neutral values are false, 0, "", [] and {}.
constexpr std::string_view kOff[] = {"adapter_id",
                                     "allowed_token_ids",
                                     "bad_words",
                                     "cache_salt",
                                     "chat_template",
                                     "chat_template_kwargs",
                                     "decoder_input_details",
                                     "details",
                                     "documents",
                                     "dry_multiplier",
                                     "dynatemp_range",
                                     "early_stopping",
                                     "functions",
                                     "generation_prompt",
                                     "grammar",
                                     "grammar_lazy",
                                     "grammar_triggers",
                                     "guided_choice",
                                     "guided_grammar",
                                     "guided_regex",
                                     "guideline",
                                     "image_data",
                                     "include_stop_str_in_output",
                                     "kv_transfer_params",
                                     "logits_processors",
                                     "lora",
                                     "min_keep",
                                     "min_tokens",
                                     "mirostat",
                                     "mm_processor_kwargs",
                                     "multimodal_data",
                                     "n_indent",
                                     "no_repeat_ngram_size",
                                     "parse_tool_calls",
                                     "penalize_nl",
                                     "post_sampling_probs",
                                     "prefix",
                                     "preserved_tokens",
                                     "reasoning_budget_message",
                                     "reasoning_control",
                                     "response_fields",
                                     "return_full_text",
                                     "return_token_ids",
                                     "return_tokens",
                                     "return_tokens_as_token_ids",
                                     "stop_token_ids",
                                     "structured_outputs",
                                     "suffix",
                                     "tool_prompt",
                                     "tools",
                                     "top_n_tokens",
                                     "use_beam_search",
                                     "verbose",
                                     "vllm_xargs",
                                     "watermark"};

// Fields that are not supported and have neutral values of their own.
struct Only {
  std::string_view name;
  const char* values = "[]";  // besides null
  const char* remedy = "";
};
constexpr Only kOnly[] = {
    {"adaptive_target", "[-1]"},
    {"add_generation_prompt", "[true]"},
    {"add_special_tokens", "[true]"},
    {"audio"},
    {"do_sample", "[true]", "use temperature 0"},
    {"enable_thinking"},
    {"function_call", R"(["auto", "none", ""])"},
    {"guided_json"},
    {"include_reasoning", "[true]"},
    {"json_schema"},
    {"length_penalty", "[1]"},
    {"max_new_tokens", "[]", "use max_tokens"},
    {"modalities", R"([["text"], []])"},
    {"num_beams", "[1]"},
    {"prompt_embeds"},
    {"prompt_logprobs", "[false]", "use echo with logprobs"},
    {"reasoning"},
    {"reasoning_budget", "[-1]"},
    {"reasoning_budget_tokens", "[-1]"},
    {"reasoning_effort"},
    {"reasoning_format", R"(["none"])"},
    {"repetition_penalty", "[1]", "use repeat_penalty, with repeat_last_n -1 for the whole text"},
    {"response_format", R"([{"type": "text"}])"},
    {"skip_special_tokens", "[true]", "start the server with --special"},
    {"spaces_between_special_tokens", "[true]"},
    {"sse_ping_interval"},
    {"structural_tag"},
    {"t_max_predict_ms", "[0, -1]"},
    {"t_max_prompt_ms", "[0, -1]"},
    {"tfs_z", "[1]"},
    {"thinking"},
    {"thinking_budget_tokens", "[-1]"},
    {"thinking_token_budget", "[-1]"},
    {"tool_choice", R"(["auto", "none", ""])"},
    {"truncate"},
    {"truncate_prompt_tokens"},
    {"verbosity", R"(["medium"])"},
    {"web_search_options"},
};

constexpr size_t kMostOfName = 64;

bool asks_for_nothing(const json& value) {
  return value.is_null() || value == false || value == "" || (value.is_number() && value == 0) ||
         (value.is_structured() && value.empty());
}

bool is_named(const auto& list, std::string_view name) {
  return std::ranges::find(list, name) != std::end(list);
}

Status refused(const std::string& name, const json& value, const Only& only) {
  const json neutral = json::parse(only.values);
  if (std::ranges::find(neutral, value) != neutral.end()) return {};
  std::string detail = "is not supported";
  if (*only.remedy != '\0') detail += fmt::format("; {}", only.remedy);
  if (!neutral.empty()) detail += fmt::format(" (found {}, expected {})", shown(value), shown(neutral[0]));
  return field_error(name, detail);
}

Status check_field(const std::string& name, const json& value, BodyForm form) {
  if (value.is_null()) return {};
  const auto read = std::ranges::find(kRead, name, &Read::name);
  const bool is_read = read != std::end(kRead) && (read->by & bit(form)) != 0;
  if (is_read || is_named(kHarmless, name)) return {};
  const auto only = std::ranges::find(kOnly, name, &Only::name);
  if (only != std::end(kOnly)) return refused(name, value, *only);
  const bool known = is_named(kOff, name) || read != std::end(kRead);
  if (known && asks_for_nothing(value)) return {};
  if (is_named(kOff, name)) return field_error(name, "is not supported");
  if (known) return field_error(name, "is not a field of this route");
  return field_error(well_formed(name.substr(0, kMostOfName)), "is not a known field");
}

}  // namespace

Error field_error(const std::string& field, const std::string& detail) {
  return {Code::invalid_argument, kRequest, fmt::format("{}: {}", field, detail)};
}

std::string shown(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 48);
}

Status check_fields(const json& body, BodyForm form) {
  for (const auto& [name, value] : body.items()) TIERD_TRY(check_field(name, value, form));
  return {};
}

Status check_fields(const json& object, const std::string& prefix, std::initializer_list<const char*> reads) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_null() || is_named(reads, name)) continue;
    return field_error(prefix + well_formed(name.substr(0, kMostOfName)), "is not a known field");
  }
  return {};
}

}  // namespace tierd
