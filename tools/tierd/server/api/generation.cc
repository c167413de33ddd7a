#include "tools/tierd/server/api/generation.h"

#include <algorithm>
#include <utility>

#include "core/base/time.h"

namespace tierd {

Result<std::shared_ptr<Generation>> Generation::create(const Tokenizer& tokenizer, SharedTokens prompt,
                                                       std::shared_ptr<const GenerationOptions> options,
                                                       uint64_t seed,
                                                       std::function<void(GenerationEvent)> told) {
  const std::shared_ptr<const SamplerOptions> sampling(options, &options->sampling);
  TIERD_ASSIGN(Sampler sampler, Sampler::create(sampling, seed));
  for (const uint32_t token : *prompt) sampler.accept(token);
  return std::shared_ptr<Generation>(
      new Generation(tokenizer, std::move(prompt), std::move(options), std::move(sampler), std::move(told)));
}

Generation::Generation(const Tokenizer& tokenizer, SharedTokens prompt,
                       std::shared_ptr<const GenerationOptions> options, Sampler sampler,
                       std::function<void(GenerationEvent)> told)
    : tokenizer_(tokenizer),
      prompt_(std::move(prompt)),
      shared_options_(std::move(options)),
      options_(*shared_options_),
      sampler_(std::move(sampler)),
      told_(std::move(told)),
      stream_(options_.stops) {}

Text Generation::text_of(std::shared_ptr<Generation> generation, std::string label) {
  Text text;
  text.label = std::move(label);
  text.prompt = generation->prompt_;
  text.prompt_logits = generation->options_.prompt_logprobs;
  text.continuation = std::move(generation);
  return text;
}

std::optional<Logprobs> Generation::logprobs(std::span<const float> logits, uint32_t token) const {
  if (!options_.logprobs) return std::nullopt;
  return logprobs_of(logits, token, *options_.logprobs);
}

GenerationTimes Generation::times() const {
  const uint64_t now = now_ns();
  GenerationTimes times{.prompt_tokens = prompt_->size(),
                        .cached_tokens = cached_,
                        .generated_tokens = generated_,
                        .guesses = guesses_,
                        .right_guesses = right_guesses_};
  if (began_ns_ != 0) times.prompt_ns = (first_ns_ != 0 ? first_ns_ : now) - began_ns_;
  if (first_ns_ != 0) times.generated_ns = now - first_ns_;
  return times;
}

void Generation::prompt_progress(const PromptProgress& progress) {
  if (began_ns_ == 0) began_ns_ = now_ns();
  cached_ = progress.cached;
  told_(ProgressEvent{progress, now_ns() - began_ns_});
}

// The logits after token i are those of token i + 1.
void Generation::prompt_logits(size_t i, std::span<const float> logits) {
  const auto tell = [&](uint32_t token, std::optional<Logprobs> of) {
    told_(PromptTokenEvent{token, tokenizer_.piece(token, true), std::move(of)});
  };
  if (i == 0) tell((*prompt_)[0], std::nullopt);
  if (i + 1 < prompt_->size()) tell((*prompt_)[i + 1], logprobs(logits, (*prompt_)[i + 1]));
}

Result<std::optional<uint32_t>> Generation::next(std::span<const float> logits) {
  if (first_ns_ == 0) first_ns_ = now_ns();
  const std::optional<uint32_t> none;
  end_.why = EndEvent::Why::most_tokens;
  if (options_.most_tokens == 0) return none;
  TIERD_ASSIGN(const uint32_t token, sampler_.sample(logits));
  const std::vector<uint32_t>& ends = tokenizer_.vocab().end_tokens;
  if (!options_.ignore_eos && std::find(ends.begin(), ends.end(), token) != ends.end()) {
    end_.why = EndEvent::Why::end_token;
    // The end token adds no text, but clients that score texts need its logprob.
    if (options_.logprobs)
      told_(TokenEvent{token, tokenizer_.piece(token, true), {}, logprobs(logits, token), times()});
    end_.text = stream_.add_hidden(tokenizer_.piece(token, true));
    note_stop();
    return none;
  }
  ++generated_;
  TokenEvent event{token, tokenizer_.piece(token, options_.special), {}, logprobs(logits, token), times()};
  event.text =
      event.bytes.empty() ? stream_.add_hidden(tokenizer_.piece(token, true)) : stream_.add(event.bytes);
  told_(std::move(event));
  if (note_stop()) return none;
  if (generated_ == options_.most_tokens) return none;
  return std::optional(token);
}

bool Generation::note_stop() {
  if (stream_.stop().empty()) return false;
  end_.why = EndEvent::Why::stop_string;
  end_.stop = stream_.stop();
  return true;
}

void Generation::ended(TextEnd end, const Status& why) {
  switch (end) {
    case TextEnd::finished:
      break;  // `next` has set the reason
    case TextEnd::context_full:
      end_.why = EndEvent::Why::context_full;
      break;
    case TextEnd::cancelled:
      end_.why = EndEvent::Why::cancelled;
      break;
    case TextEnd::failed:
      end_.why = EndEvent::Why::failed;
      end_.error = why.error();
      break;
  }
  end_.text += stream_.finish();
  end_.times = times();
  told_(std::move(end_));
}

}  // namespace tierd
