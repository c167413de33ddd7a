// Continues many texts at once (continuous batching). A step takes either the next row of every text that is
// being generated, so that one read of weights serves all, or a chunk of the unfinished prompts. The two
// alternate, since prompts bypass the caches. Between two steps, a text that is over leaves, and a waiting
// one takes its place. If drafters guess tokens, a step checks the guesses of all texts at once: each text
// takes the right ones, and its result is the same as without.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/engine/drafter.h"
#include "core/engine/engine.h"

namespace tierd {

// The progress of a prompt.
struct PromptProgress {
  uint32_t tokens = 0;  // of the prompt
  uint32_t cached = 0;  // of those, already in the KV cache
  uint32_t done = 0;    // computed tokens, cached ones included
};

enum class TextEnd : uint8_t {
  finished,      // `next` returned no token
  context_full,  // there is no position for its last token
  cancelled,
  failed,
};

// Receives the results of a text; implemented by its client. All calls on the engine's thread, between two
// steps; none may call the batcher.
class Continuation {
 public:
  virtual ~Continuation() = default;
  // Called when the text is admitted, and after each chunk of its prompt.
  virtual void prompt_progress(const PromptProgress&) {}
  // Receives the logits after token i of the prompt, [vocab], in order, for a text with `prompt_logits`.
  virtual void prompt_logits(size_t /*i*/, std::span<const float> /*logits*/) {}
  // Receives the logits after the last token, [vocab]; returns the next token. None or an error ends the
  // text.
  virtual Result<std::optional<uint32_t>> next(std::span<const float> logits) = 0;
  // Called after a step that checked guesses, with their number and the number of right ones.
  virtual void guessed(size_t /*guesses*/, size_t /*right*/) {}
  // The last call. `why` is an error if the text failed.
  virtual void ended(TextEnd end, const Status& why) = 0;
};

// Tokens that several texts share.
using SharedTokens = std::shared_ptr<const std::vector<uint32_t>>;

struct Text {
  SharedTokens prompt;         // at least one token
  bool prompt_logits = false;  // no part of such a prompt is taken from the cache
  std::shared_ptr<Continuation> continuation;
  std::string label = {};  // the client, for traces
};

class Batcher {
 public:
  struct Options {
    uint32_t sequences = 1;   // of the KV cache, numbers 0 and up; no other session uses them
    size_t most_waiting = 0;  // texts beside those in progress
    // [sequences] the drafter of each; empty: no guesses. They outlive the batcher.
    std::vector<Drafter*> drafters = {};
    uint32_t most_guesses = 0;  // for a text in a step
  };
  // The engine has at least as many rows with logits as sequences; it outlives the batcher.
  Batcher(Engine& engine, Options options);
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  using Id = uint64_t;
  // Queues a text. Errors: no_space with "context" if the prompt does not fit one, with "queue" if too many
  // texts wait; invalid_argument for an invalid token. The continuation is then not called.
  Result<Id> add(Text text);
  // Ends a text before the next step; does nothing if it has ended.
  void cancel(Id id);

  // Returns whether any text is in progress or waits.
  bool busy() const { return continued_ != 0 || !waiting_.empty(); }
  // Makes one step for all texts that can continue. An error that concerns one text is passed to that text: a
  // step of several texts that fails is repeated for each alone. Error: cancelled, if the engine was stopped;
  // the texts keep their state.
  Status step();
  // Ends all texts.
  void cancel_all();

  struct Counters {
    uint64_t prompt_tokens = 0;     // computed
    uint64_t cached_tokens = 0;     // tokens found in the KV cache
    uint64_t generated_tokens = 0;  // calls of `next`, the last one of each text included
    uint64_t guesses = 0;           // guesses that were checked
    uint64_t right_guesses = 0;     // of `guesses`, the right ones
    uint64_t steps = 0;
    uint64_t texts = 0;  // texts that have ended
  };
  const Counters& counters() const { return counters_; }
  size_t waiting() const { return waiting_.size(); }
  uint32_t continued() const { return continued_; }

  // The state of a sequence of the KV cache, for monitoring.
  struct SequenceState {
    std::optional<Id> text;    // the text that uses it
    size_t tokens = 0;         // in the cache
    size_t prompt_tokens = 0;  // of the text
    bool in_prompt = false;
  };
  std::vector<SequenceState> sequences() const;

 private:
  struct Waiting {
    Id id;
    Text text;
  };
  struct Active {
    Id id = 0;
    Text text;
    uint32_t cached = 0;
    uint32_t token = 0;                  // the next to be computed, after the prompt
    std::vector<uint32_t> guesses = {};  // guesses of the tokens that follow it
  };
  struct Sequence {
    std::vector<uint32_t> tokens;  // in the KV cache
    uint64_t last_used = 0;
    bool begun = false;  // predictors were told of its beginning
    std::optional<Active> active;

    bool in_prompt() const { return tokens.size() < active->text.prompt->size(); }
  };
  // A part of a step.
  struct Part {
    uint32_t sequence = 0;
    uint32_t rows = 0;
    uint32_t first_wanted = 0;  // of the step's rows with logits
    uint32_t wanted = 0;
  };
  struct Step {
    std::vector<RowInfo> rows;
    std::vector<uint32_t> wanted;
    std::vector<Part> parts;
    bool prefill = false;
  };

  void admit();
  static void tell_progress(const Sequence& sequence);
  uint32_t place_for(const Text& text) const;
  Step compose();
  void guess(std::span<const uint32_t> sequences);
  void add(Step& step, uint32_t sequence) const;
  Status run(const Step& step);
  void go_on(const Part& part, const Step& step, std::span<const float> logits);
  void keep_right(const Part& part, const Step& step, uint32_t rows);
  void end(Sequence& sequence, TextEnd end, const Status& why);

  Engine& engine_;
  Options options_;
  Id last_id_ = 0;
  uint64_t clock_ = 0;  // of last_used
  std::vector<Sequence> sequences_;
  std::deque<Waiting> waiting_;
  std::deque<uint32_t> alone_;  // sequences of a failed step, to be repeated alone
  uint32_t continued_ = 0;
  bool prompts_next_ = true;      // if there are both
  bool told_of_drafter_ = false;  // whether a drafter's failure was logged
  Counters counters_;
};

}  // namespace tierd
