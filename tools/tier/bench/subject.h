// The model under test: a runtime, loaded, that runs blocks of tokens and measures the machine in between.
// Used by one thread, which it binds while it lives.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/base/result.h"
#include "core/engine/session.h"
#include "core/kernel/site_use.h"
#include "core/model/sampling/sampler.h"
#include "core/run/runtime.h"
#include "core/watch/energy/energy_ledger.h"
#include "tools/tier/bench/arguments.h"
#include "tools/tier/bench/core_set.h"
#include "tools/tier/bench/limit.h"

namespace tierd {

// A site whose neurons are predicted.
struct SiteForesight {
  uint32_t neurons = 0;
  SiteUse use;
};

struct MemoryHeld {
  uint64_t bytes = 0;    // of the budget, less the slots that hold no neuron: those take no memory
  uint64_t weights = 0;  // of them
};

// What was counted while the tokens of a block went through.
struct Block {
  uint64_t tokens = 0;
  double seconds = 0;
  StepTimes times;            // of all its steps
  uint64_t wake_ups = 0;      // of parked threads
  uint64_t flash_ns = 0;      // with a read in flight, in the course of flash_steps
  uint64_t checksum_ns = 0;   // of what was read, likewise
  uint64_t reads = 0;         // given to the device, likewise
  uint64_t device_bytes = 0;  // that these brought
  uint64_t flash_steps = 0;   // those of `times` and one that only started the reads ahead
  // At its end.
  MemoryHeld memory;
  std::map<std::string, double> cache;  // the gauges that the cache has set
  std::vector<SiteForesight> foreseen;  // of sites whose neurons are predicted
  Traffic traffic;
  Bandwidths bandwidths;               // before and after, the mean
  std::optional<EnergyTotals> energy;  // its `run` is the block; none: what the machine draws is not known

  double rate() const { return static_cast<double>(tokens) / seconds; }
};

class Subject {
 public:
  // Opens and loads, and reads the text if there is one. Errors: those of plan_run, Runtime::create
  // and Runtime::load; invalid_argument for a text that the context has no room for.
  static Result<std::unique_ptr<Subject>> create(const Arguments& arguments);
  ~Subject();

  // At least one piece of the test, for arguments.warmup_seconds.
  Status warm_up(const Workload& test);
  // The test once, or again and again for arguments.block_seconds. Starts with an empty context, or with the
  // text.
  Result<Block> run(const Workload& test);

  // Bytes per second that the compute threads read from memory now.
  Result<double> memory_bandwidth();

  Runtime& runtime() { return *runtime_; }
  size_t prompt_tokens() const { return prompt_.size(); }  // of the text
  // Tokens that are decoded and do not count when a block begins.
  uint32_t uncounted(Workload::Kind kind) const;

 private:
  Subject(const Arguments& arguments, Sampler greedy)
      : arguments_(arguments), random_(arguments.config.seed), greedy_(std::move(greedy)) {}
  bool has_text() const { return !prompt_.empty(); }
  Status read_text(const TextArguments& text, Config& config, const RuntimeOptions& options);
  Result<uint64_t> run_for(const Workload& test, double seconds);
  Status decode(uint32_t tokens);
  Status decode_one();
  Status begin_text();
  Status prefill(uint32_t tokens);
  // By the clock of the run.
  double seconds_since(uint64_t begin_ns) const {
    return static_cast<double>(runtime_->dispatcher().now_ns() - begin_ns) * 1e-9;
  }
  std::vector<SiteForesight> foreseen_since(const std::vector<SiteUse>& before) const;
  uint32_t random_token() { return random_.below(runtime_->engine().vocab_size()); }

  const Arguments& arguments_;
  const CoreSet cores_ = CoreSet::of_this_thread();
  Random random_;
  Sampler greedy_;
  std::vector<uint32_t> prompt_;  // the text; empty: tokens are random
  uint32_t next_ = 0;             // how the text goes on
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Session> session_;
};

}  // namespace tierd
