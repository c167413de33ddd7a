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
#include "core/report/figure.h"

namespace tierd {

// Times of one or more steps, on the kernel's thread, in ns.
struct StepTimes {
  uint64_t steps = 0;
  uint64_t tokens = 0;
  uint64_t wall_ns = 0;
  uint64_t compute_ns = 0;    // while at least one unit computed
  uint64_t stall_ns = 0;      // asleep while no unit computed: waiting for bytes
  uint64_t predictor_ns = 0;  // calls of the predictor, its products included
  uint64_t reading_ns = 0;    // in the flash agent: submitting, checking and copying; 0 with its own thread
  uint64_t read_bytes = 0;
  uint64_t resident_bytes = 0;
  uint64_t streamed_bytes = 0;
  uint64_t messages = 0;

  static constexpr auto figures() {
    using F = StepTimes;
    return std::tuple(Basis{&F::steps}, Basis{&F::tokens}, Basis{&F::wall_ns}, Basis{&F::compute_ns},
                      Basis{&F::stall_ns}, Basis{&F::predictor_ns}, Basis{&F::reading_ns},
                      Basis{&F::read_bytes}, Basis{&F::resident_bytes}, Basis{&F::streamed_bytes},
                      Basis{&F::messages});
  }
  uint64_t other_ns() const { return wall_ns - std::min(wall_ns, compute_ns + stall_ns); }
  // The part of other_ns spent in the kernel, the cache and the other strategies.
  uint64_t management_ns() const { return other_ns() - std::min(other_ns(), predictor_ns + reading_ns); }
};

// The objects that an engine drives. All of them outlive the engine, or its use of them.
struct EngineParts {
  Dispatcher* dispatcher;
  Scheduler* scheduler;
  const ModelPlan* plan;
  uint16_t agent;  // the agent whose buffers hold the logits
};

// The cost of continuing without lost agents.
struct Losses {
  uint64_t agents = 0;
  uint64_t tokens = 0;  // tokens whose keys and values were computed again
  uint64_t ns = 0;      // from the loss until the step could be repeated
};

class Engine {
 public:
  // One thread. `recover` is called before a step, with nothing in flight, if a strategy is quarantined; it
  // returns the step's error.
  Engine(EngineParts parts, std::function<Status()> recover);

  // Lets the engine continue when an agent is lost: it then calls `rebuild`, with nothing in flight, for
  // empty parts of the same model without that agent; an error of `rebuild` becomes the step's. To be called
  // before the first step. From then on the engine keeps the tokens of all sequences: their rows must come in
  // the order of their positions, without gaps.
  using Rebuild = std::function<Result<EngineParts>(uint16_t agent)>;
  void set_rebuild(Rebuild rebuild) { rebuild_ = std::move(rebuild); }
  const Losses& losses() const { return losses_; }

  // Fetches the neurons that the caches want resident. Calls `progress` with the bytes that landed.
  Status load(const std::function<void(uint64_t)>& progress);

  // Makes one pass over the layers for rows.size() <= max_rows tokens. `wanted`: rows whose logits are
  // returned, ascending, at most logit_rows of them. Returns [wanted x vocab], valid until the next step.
  // `prefill`: the rows are a prompt's. Several prompt rows bypass the caches; a single one is treated as a
  // decoded token. After an error the KV positions of these rows are undefined. Errors: corrupt, for logits
  // that are not finite, and those of transfers and runs.
  Result<std::span<const float>> step(std::span<const RowInfo> rows, std::span<const uint32_t> wanted,
                                      bool prefill);

  // A sequence begins before its first step, and ends after its last; the predictor and caches are told.
  // `label`: its client, for traces. A fault of an end becomes the error of the next begin or step, unless
  // take_fault takes it before.
  Status begin_sequence(uint64_t sequence, std::string_view label = {});
  void end_sequence(uint64_t sequence);

  Status take_fault() { return parts_.scheduler->take_fault(); }

  // Reports how many rows of the last step, a token and guesses of the tokens after it, were right.
  void rows_kept(uint32_t rows, uint32_t kept) { parts_.scheduler->rows_kept(rows, kept); }

  // Gives up all reads ahead, when no step follows.
  Status drain();

  // Resizes arenas; after `drain`. See Scheduler::resize.
  Status resize(ArenaParts parts);

  // `ask` is called before each step and each sequence, when no step runs; it may call `drain` and `resize`.
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
  // The record of a sequence, to compute it again.
  struct History {
    std::vector<uint32_t> tokens;      // by position
    size_t computed = 0;               // tokens whose keys and values are in the KV cache
    std::optional<std::string> label;  // set while the sequence is open
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
  std::map<uint64_t, History> histories_;  // of the sequences, if there is `rebuild_`
  Losses losses_;
  Status gone_;  // the error of `rebuild_`, after which nothing can be driven
  std::function<void()> between_steps_;
  std::vector<RowInfo> batch_;
  std::vector<RowInfo> picked_;  // the rows of batch_ whose logits are wanted
  std::vector<RowInfo> chosen_;  // the rows of batch_ that use an expert
  uint32_t step_ = 0;
  uint64_t stall_ns_ = 0;
  StepTimes prefill_;
  StepTimes decode_;
};

}  // namespace tierd
