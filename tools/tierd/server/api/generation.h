// One text that a client has asked for, as the engine's thread sees it: samples, turns tokens into text, and
// knows when it is over. What it finds it tells in events, which are data.
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
  bool special = false;              // control tokens are text, too
  std::optional<uint32_t> logprobs;  // so many of the most probable tokens beside each one
  bool prompt_logprobs = false;      // of the prompt, too; `logprobs` is set then
};

// How much, and how long, so far.
struct GenerationTimes {
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;  // of those
  uint64_t generated_tokens = 0;
  uint64_t prompt_ns = 0;     // from its turn to the first token
  uint64_t generated_ns = 0;  // from there
  uint64_t guesses = 0;       // that were checked
  uint64_t right_guesses = 0;
};

// A token as it came. `text`: what may be shown from now on, which may be less or more than the token's own
// bytes.
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
  uint64_t ns = 0;  // since its turn came
};
struct EndEvent {
  enum class Why : uint8_t { end_token, stop_string, most_tokens, context_full, cancelled, failed };
  Why why = Why::failed;
  std::string text;                 // the rest
  std::string stop;                 // string that ended it
  std::optional<Error> error = {};  // of a failed one
  GenerationTimes times;
};
using GenerationEvent = std::variant<ProgressEvent, PromptTokenEvent, TokenEvent, EndEvent>;

class Generation final : public Continuation {
 public:
  // The tokenizer outlives it. Texts of one request share prompt and options; `seed` stands in place of the
  // options' one. `told`: of every event, on the engine's thread; EndEvent is the last. Error:
  // invalid_argument naming the option of sampling.
  static Result<std::shared_ptr<Generation>> create(const Tokenizer& tokenizer, SharedTokens prompt,
                                                    std::shared_ptr<const GenerationOptions> options,
                                                    uint64_t seed, std::function<void(GenerationEvent)> told);

  // For the batcher, once. `label`: whose it is.
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
  // Whether a stop string has ended the text.
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
