// Continues many texts at once (continuous batching). A step takes the next row of every text that is being
// generated, so that what is read for one serves all, or a chunk of the prompts that are not through; the two
// take turns, since what a prompt uses goes past the caches. A text that is over leaves, and one that waits
// takes its place, between two steps. Where drafters guess the tokens to come, a step checks the guesses of
// all texts at once: each text takes those that are right, and is the same as without.
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

// How far a prompt is.
struct PromptProgress {
  uint32_t tokens = 0;  // of the prompt
  uint32_t cached = 0;  // of those, already in the KV cache
  uint32_t done = 0;    // of those, cached ones included
};

enum class TextEnd : uint8_t {
  finished,      // `next` said so
  context_full,  // its last token has no place
  cancelled,
  failed,
};

// What becomes of a text; written by whoever wants it. All calls on the engine's thread, between two steps;
// none may call the batcher.
class Continuation {
 public:
  virtual ~Continuation() = default;
  // When it is its turn, and after each chunk.
  virtual void prompt_progress(const PromptProgress&) {}
  // Logits after token i of the prompt, [vocab], in their order, for a text that asked for them.
  virtual void prompt_logits(size_t /*i*/, std::span<const float> /*logits*/) {}
  // Logits after the last token, [vocab]: the next token, or none where the text is over. Its error ends the
  // text.
  virtual Result<std::optional<uint32_t>> next(std::span<const float> logits) = 0;
  // After a step that checked guesses: how many, and how many of them were right.
  virtual void guessed(size_t /*guesses*/, size_t /*right*/) {}
  // Once, and last. `why` is an error where it failed.
  virtual void ended(TextEnd end, const Status& why) = 0;
};

// Tokens that several texts share.
using SharedTokens = std::shared_ptr<const std::vector<uint32_t>>;

struct Text {
  SharedTokens prompt;         // at least one token
  bool prompt_logits = false;  // no part of such a prompt is taken from the cache
  std::shared_ptr<Continuation> continuation;
  std::string label = {};  // whose it is, for traces
};

class Batcher {
 public:
  struct Options {
    uint32_t sequences = 1;   // of the KV cache, numbers 0 and up; no other session uses them
    size_t most_waiting = 0;  // texts beside those that are continued
    // [sequences] who guesses for each; empty: nobody does. They outlive the batcher.
    std::vector<Drafter*> drafters = {};
    uint32_t most_guesses = 0;  // for a text in a step
  };
  // The engine has at least as many rows with logits as sequences; it outlives the batcher.
  Batcher(Engine& engine, Options options);
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  using Id = uint64_t;
  // Errors: no_space with "context" where the prompt does not fit one, with "queue" where too many wait;
  // invalid_argument for a token that there is not. The continuation is then not called.
  Result<Id> add(Text text);
  // It ends before the next step; one that has ended is passed over.
  void cancel(Id id);

  // Whether there is anything to do.
  bool busy() const { return continued_ != 0 || !waiting_.empty(); }
  // One step for whoever can go on. What fails a single text is told to it alone: a step of several that
  // fails is done again for each by itself. Error: cancelled, when the engine was stopped; the texts stay
  // where they were.
  Status step();
  // Ends all texts.
  void cancel_all();

  struct Counters {
    uint64_t prompt_tokens = 0;     // computed
    uint64_t cached_tokens = 0;     // not computed, since the KV cache had them
    uint64_t generated_tokens = 0;  // `next` was asked for, the ends of texts included
    uint64_t guesses = 0;           // that were checked
    uint64_t right_guesses = 0;     // of those
    uint64_t steps = 0;
    uint64_t texts = 0;  // that ended
  };
  const Counters& counters() const { return counters_; }
  size_t waiting() const { return waiting_.size(); }
  uint32_t continued() const { return continued_; }

  // A sequence of the KV cache, for whoever watches.
  struct SequenceState {
    std::optional<Id> text;    // that it belongs to
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
    std::vector<uint32_t> guesses = {};  // of those that follow it
  };
  struct Sequence {
    std::vector<uint32_t> tokens;  // in the KV cache
    uint64_t last_used = 0;
    bool begun = false;  // predictors were told
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
  std::deque<uint32_t> alone_;  // sequences whose step failed with others
  uint32_t continued_ = 0;
  bool prompts_next_ = true;      // where there are both
  bool told_of_drafter_ = false;  // that one failed
  Counters counters_;
};

}  // namespace tierd
