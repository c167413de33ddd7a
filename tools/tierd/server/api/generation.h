// The generation of one text on the engine's thread: samples tokens, decodes them to text and decides when
// the text ends. It reports to the HTTP thread by events, which are plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/engine/batcher.h"
#include "core/model/sampling/logprobs.h"
#include "core/model/sampling/sampler.h"
#include "core/model/text/text_stream.h"
#include "core/model/text/tokenizer.h"

namespace tierd {

struct GenerationOptions {
  SamplerOptions sampling;
  std::vector<std::string> stops;
  uint64_t most_tokens = UINT64_MAX;
  bool ignore_eos = false;
  bool special = false;              // control tokens are shown as text
  std::optional<uint32_t> logprobs;  // number of most probable tokens beside each token
  bool prompt_logprobs = false;      // of the prompt's tokens, too; needs `logprobs`
};

// Numbers of tokens, and durations, up to now.
struct GenerationTimes {
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;  // of prompt_tokens, found in the KV cache
  uint64_t generated_tokens = 0;
  uint64_t prompt_ns = 0;     // from the start of its prompt to the first token
  uint64_t generated_ns = 0;  // since the first token
  uint64_t guesses = 0;       // checked guesses
  uint64_t right_guesses = 0;
};

// A generated token. `text`: the text that can be shown now. It may have fewer or more bytes than the token.
struct TokenEvent {
  uint32_t token = 0;
  std::string bytes;
  std::string text;
  std::optional<Logprobs> logprobs;
  GenerationTimes times;
};
// A token of the prompt; the first has no logprobs.
struct PromptTokenEvent {
  uint32_t token = 0;
  std::string bytes;
  std::optional<Logprobs> logprobs;
};
struct ProgressEvent {
  PromptProgress prompt;
  uint64_t ns = 0;  // since the start of the prompt
};
struct EndEvent {
  enum class Why : uint8_t { end_token, stop_string, most_tokens, context_full, cancelled, failed };
  Why why = Why::failed;
  std::string text;                 // text that no TokenEvent had
  std::string stop;                 // the stop string that ended the text
  std::optional<Error> error = {};  // where `why` is failed
  GenerationTimes times;
};
using GenerationEvent = std::variant<ProgressEvent, PromptTokenEvent, TokenEvent, EndEvent>;

class Generation final : public Continuation {
 public:
  // The tokenizer must outlive the object. The texts of one request share prompt and options; `seed` replaces
  // the seed of the options. `told` is called with every event on the engine's thread; EndEvent is the last.
  // Error: invalid_argument, which names the option of sampling.
  static Result<std::shared_ptr<Generation>> create(const Tokenizer& tokenizer, SharedTokens prompt,
                                                    std::shared_ptr<const GenerationOptions> options,
                                                    uint64_t seed, std::function<void(GenerationEvent)> told);

  // Returns the text for the batcher. Call it once. `label`: the request's id.
  static Text text_of(std::shared_ptr<Generation> generation, std::string label);

  void prompt_progress(const PromptProgress& progress) override;
  void prompt_logits(size_t i, std::span<const float> logits) override;
  Result<std::optional<uint32_t>> next(std::span<const float> logits) override;
  void guessed(size_t guesses, size_t right) override { guesses_ += guesses, right_guesses_ += right; }
  void ended(TextEnd end, const Status& why) override;

 private:
  Generation(const Tokenizer& tokenizer, SharedTokens prompt,
             std::shared_ptr<const GenerationOptions> options, Sampler sampler,
             std::function<void(GenerationEvent)> told);
  GenerationTimes times() const;
  // Returns whether a stop string has ended the text, and notes it in end_.
  bool note_stop();
  std::optional<Logprobs> logprobs(std::span<const float> logits, uint32_t token) const;

  const Tokenizer& tokenizer_;
  SharedTokens prompt_;
  std::shared_ptr<const GenerationOptions> shared_options_;
  const GenerationOptions& options_;
  Sampler sampler_;
  std::function<void(GenerationEvent)> told_;
  TextStream stream_;
  EndEvent end_;
  uint64_t generated_ = 0;
  uint64_t cached_ = 0;
  uint64_t began_ns_ = 0;
  uint64_t first_ns_ = 0;
  uint64_t guesses_ = 0;
  uint64_t right_guesses_ = 0;
};

}  // namespace tierd
