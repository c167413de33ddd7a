// The objects of llama-server's /completion.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/model/text/tokenizer.h"
#include "tools/tierd/server/api/completion_request.h"
#include "tools/tierd/server/api/generation.h"

namespace tierd {

// A piece of a text in a stream.
struct NativePart {
  size_t index = 0;  // number of the text in its request
  std::string content;
  std::vector<uint32_t> tokens;
  GenerationTimes times;
};
nlohmann::json native_part(const NativePart& part);

// A text that has ended. `tokens` is empty unless the client requested them.
struct NativeText {
  size_t index = 0;
  std::string model;
  std::string content;  // empty in a stream
  std::vector<uint32_t> tokens;
  bool has_new_line = false;
};
nlohmann::json native_text(const NativeText& text, const EndEvent& end, const CompletionRequest& request,
                           const std::string& prompt);

// Returns "completion_probabilities": each token with the most probable tokens beside it.
nlohmann::json native_probabilities(std::span<const PromptTokenEvent> tokens, const Tokenizer& tokenizer);

}  // namespace tierd
