// Walks the layers of a model, site by site, for a batch of tokens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/engine/model_plan.h"
#include "core/kernel/pass/scheduler.h"
#include "core/kernel/post/dispatcher.h"

namespace tierd {

// Where the time of one or more steps went, on the kernel's thread, in ns.
struct StepTimes {
  uint64_t steps = 0;
  uint64_t tokens = 0;
  uint64_t wall_ns = 0;
  uint64_t compute_ns = 0;    // at least one unit computed
  uint64_t stall_ns = 0;      // asleep while no unit computed: waiting for bytes
  uint64_t predictor_ns = 0;  // asking it, its products included
  uint64_t reading_ns = 0;    // in the flash agent: submitting, checking and copying; 0 with its own thread
  uint64_t read_bytes = 0;
  uint64_t resident_bytes = 0;
  uint64_t streamed_bytes = 0;
  uint64_t messages = 0;

  uint64_t other_ns() const { return wall_ns - std::min(wall_ns, compute_ns + stall_ns); }
  // The part of it that memory and messages are managed with: the kernel, the cache, the other strategies.
  uint64_t management_ns() const { return other_ns() - std::min(other_ns(), predictor_ns + reading_ns); }
};

// What an engine drives. All of it outlives the engine, or the engine is given others first.
struct EngineParts {
  Dispatcher* dispatcher;
  Scheduler* scheduler;
  const ModelPlan* plan;
  uint16_t agent;  // whose buffers hold the logits
};

// What it took to go on without agents that were lost.
struct Losses {
  uint64_t agents = 0;
  uint64_t tokens = 0;  // whose place in the KV cache was computed again
  uint64_t ns = 0;      // from the loss until the step could be made again
};

class Engine {
 public:
  // One thread. `recover` is asked before a step, with nothing in flight, when a strategy is quarantined: its
  // error is the step's.
  Engine(EngineParts parts, std::function<Status()> recover);

  // Has the engine go on where an agent is lost: `rebuild` is asked then, with nothing in flight, and gives
  // parts for the same model without that agent, which hold nothing yet; its error is the step's. Before the
  // first step. The engine keeps the tokens of all sequences from then on: their rows come in the order of
  // their positions, and whatever a row stands behind came before it, or in the same step.
  using Rebuild = std::function<Result<EngineParts>(uint16_t agent)>;
  void set_rebuild(Rebuild rebuild) { rebuild_ = std::move(rebuild); }
  const Losses& losses() const { return losses_; }

  // Brings in what the caches want resident. `progress` hears of bytes that landed.
  Status load(const std::function<void(uint64_t)>& progress);

  // One pass over the layers for rows.size() <= max_rows tokens. `wanted`: rows whose logits are asked for,
  // ascending, at most logit_rows of them; they come back as [wanted x vocab] and stay valid until the next
  // step. `prefill`: a prompt's rows; where there are several, nothing that streams by is admitted to a
  // cache, and a single one goes as a decoded token does. After an error the KV positions of these rows are
  // undefined. Error: corrupt, for logits that are not finite, beside those of what moves and computes.
  Result<std::span<const float>> step(std::span<const RowInfo> rows, std::span<const uint32_t> wanted,
                                      bool prefill);

  // A sequence of rows begins before its first step, and ends after its last; predictors hear of it. `label`:
  // whose it is, for traces. The fault of an end fails what is asked next, a beginning or a step, unless it
  // is taken before.
  Status begin_sequence(uint64_t sequence, std::string_view label = {});
  void end_sequence(uint64_t sequence);

  Status take_fault() { return parts_.scheduler->take_fault(); }

  // Says how many rows of the last step, a token and guesses of those that follow it, were right.
  void rows_kept(uint32_t rows, uint32_t kept) { parts_.scheduler->rows_kept(rows, kept); }

  // Gives up what was read ahead, when no step follows.
  Status drain();

  // Another size for arenas; after `drain`. See Scheduler::resize.
  Status resize(ArenaParts parts);

  // Asked before each step and each sequence, when no step runs; it may call `drain` and `resize`.
  void set_between_steps(std::function<void()> ask) { between_steps_ = std::move(ask); }
  uint32_t steps() const { return step_; }  // begun so far

  uint32_t max_rows() const { return plan().any().max_rows; }
  uint32_t logit_rows() const { return logits().rows; }
  uint32_t vocab_size() const { return logits().width; }
  uint32_t context() const { return plan().any().context; }

  const StepTimes& prefill_times() const { return prefill_; }
  const StepTimes& decode_times() const { return decode_; }
  void reset_times();

 private:
  // What is known of a sequence, to compute it again.
  struct History {
    std::vector<uint32_t> tokens;      // by their positions
    size_t computed = 0;               // of them, those whose keys and values are there
    std::optional<std::string> label;  // it has begun, and not ended
  };

  Status ready();
  Status well();
  Status step_once(std::span<const RowInfo> rows, std::span<const uint32_t> wanted, bool prefill,
                   StepTimes& times);
  uint32_t choose_rows(const RowChoice& choice, uint32_t rows);
  Task<Status> walk(uint32_t rows, std::span<const uint32_t> wanted, bool prefill);
  Status rebuild();
  Status compute_again(std::span<const RowInfo> rows);
  void remember(std::span<const RowInfo> rows);
  Status expect_numbers(std::span<const RowInfo> rows, std::span<const uint32_t> wanted,
                        std::span<const float> given) const;
  Status run(Task<Status> task);
  void wait();
  const ModelPlan& plan() const { return *parts_.plan; }
  const BufferSpec& logits() const { return plan().any().buffers[plan().any().sites.back().out]; }

  EngineParts parts_;
  std::function<Status()> recover_;
  Rebuild rebuild_;
  std::map<uint64_t, History> histories_;  // of the sequences, where there is `rebuild_`
  Losses losses_;
  Status gone_;  // why there is nothing to drive any more
  std::function<void()> between_steps_;
  std::vector<RowInfo> batch_;
  std::vector<RowInfo> picked_;  // of it: the rows whose logits are wanted
  std::vector<RowInfo> chosen_;  // of it: the rows that use an expert
  uint32_t step_ = 0;
  uint64_t stall_ns_ = 0;
  StepTimes prefill_;
  StepTimes decode_;
};

}  // namespace tierd
