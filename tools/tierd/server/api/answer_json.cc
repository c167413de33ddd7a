#include "tools/tierd/server/api/answer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tierd {
namespace {

using nlohmann::json;

double per_second(uint64_t tokens, uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(tokens) * 1e9 / static_cast<double>(ns);
}

double milliseconds_each(uint64_t tokens, uint64_t ns) {
  return tokens == 0 ? 0 : milliseconds(ns) / static_cast<double>(tokens);
}

}  // namespace

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

nlohmann::json bytes_json(std::string_view bytes) {
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

const char* stop_type_of(const EndEvent& end) {
  switch (end.why) {
    case EndEvent::Why::end_token:
      return "eos";
    case EndEvent::Why::stop_string:
      return "word";
    case EndEvent::Why::most_tokens:
    case EndEvent::Why::context_full:
      return "limit";
    case EndEvent::Why::cancelled:
    case EndEvent::Why::failed:
      break;
  }
  return "none";
}

double milliseconds(uint64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

nlohmann::json timings_json(const GenerationTimes& end) {
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
  // llama-server has these two fields only where tokens were guessed.
  if (end.guesses != 0) timings["draft_n"] = end.guesses, timings["draft_n_accepted"] = end.right_guesses;
  return timings;
}

}  // namespace tierd
