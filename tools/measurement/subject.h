// The model under test: a loaded runtime that runs blocks of tokens and measures the machine between them.
// Used by one thread, which it binds during its lifetime.
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
#include "tools/measurement/arguments.h"
#include "tools/measurement/core_set.h"
#include "tools/measurement/figures.h"
#include "tools/measurement/limit.h"

namespace tierd {

// A site whose neurons are predicted.
struct SiteForesight {
  uint32_t neurons = 0;
  SiteUse use;
};

// The counters of a block of tokens.
struct Block {
  uint64_t tokens = 0;
  double seconds = 0;
  StepTimes times;            // of all its steps
  uint64_t wake_ups = 0;      // of parked threads
  uint64_t flash_ns = 0;      // with a read in flight, during flash_steps
  uint64_t checksum_ns = 0;   // verifying reads, during flash_steps
  uint64_t reads = 0;         // given to the device, during flash_steps
  uint64_t device_bytes = 0;  // of those reads
  uint64_t flash_steps = 0;   // the steps of `times`, and one that only started the reads ahead
  // At the block's end.
  HeldFigures memory;
  std::map<std::string, double> cache;  // the gauges that the cache has set
  std::vector<SiteForesight> foreseen;  // of sites whose neurons are predicted
  Traffic traffic;
  Bandwidths bandwidths;               // mean of before and after
  std::optional<EnergyTotals> energy;  // `run` is the block; empty: the machine's power is not known

  double rate() const { return static_cast<double>(tokens) / seconds; }
};

class Subject {
 public:
  // Opens and loads the model, and reads the text if there is one. Errors: those of plan_run, Runtime::create
  // and Runtime::load; invalid_argument for a text that exceeds the context.
  static Result<std::unique_ptr<Subject>> create(const Arguments& arguments);
  ~Subject();

  // Runs at least one piece of the test, for arguments.warmup_seconds.
  Status warm_up(const Workload& test);
  // Runs the test once, or repeatedly for arguments.block_seconds. Starts with an empty context, or with the
  // text.
  Result<Block> run(const Workload& test);

  // Measures the bytes per second that the compute threads read from memory now.
  Result<double> memory_bandwidth();

  Runtime& runtime() { return *runtime_; }
  size_t prompt_tokens() const { return prompt_.size(); }  // of the text
  // Returns how many uncounted tokens are decoded at the beginning of a block.
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
  uint32_t next_ = 0;             // the next token of the text
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Session> session_;
};

}  // namespace tierd
