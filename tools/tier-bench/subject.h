// The model under test: a runtime, loaded, that runs blocks of tokens and measures the machine in between.
// Used by one thread, which it binds while it lives.
#pragma once

#include <memory>

#include "core/base/random.h"
#include "core/base/result.h"
#include "core/engine/session.h"
#include "tools/assembly/runtime.h"
#include "tools/tier-bench/arguments.h"
#include "tools/tier-bench/core_set.h"
#include "tools/tier-bench/limit.h"

namespace tierd {

// What was counted while the tokens of a block went through.
struct Block {
  uint64_t tokens = 0;
  double seconds = 0;
  StepTimes times;           // of all its steps
  uint64_t wake_ups = 0;     // of parked threads
  uint64_t flash_ns = 0;     // with a read in flight, in the course of flash_steps
  uint64_t checksum_ns = 0;  // of what was read, likewise
  uint64_t flash_steps = 0;  // those of `times` and one that only started the reads ahead
  Traffic traffic;
  Bandwidths bandwidths;  // before and after, the mean

  double rate() const { return static_cast<double>(tokens) / seconds; }
};

class Subject {
 public:
  // Opens and loads. Errors: those of plan_run, Runtime::create and Runtime::load.
  static Result<std::unique_ptr<Subject>> create(const Arguments& arguments);
  ~Subject();

  // At least one piece of the test, for arguments.warmup_seconds.
  Status warm_up(const Workload& test);
  // The test once, or again and again for arguments.block_seconds. Starts with an empty context.
  Result<Block> run(const Workload& test);

  // Bytes per second that the compute threads read from memory now.
  Result<double> memory_bandwidth();

  Runtime& runtime() { return *runtime_; }

 private:
  explicit Subject(const Arguments& arguments) : arguments_(arguments), random_(arguments.config.seed) {}
  Result<uint64_t> run_for(const Workload& test, double seconds);
  Status decode_one();
  Status prefill(uint32_t tokens);
  uint32_t random_token() { return random_.below(runtime_->engine().vocab_size()); }

  const Arguments& arguments_;
  const CoreSet cores_ = CoreSet::of_this_thread();
  Random random_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Session> session_;
};

}  // namespace tierd
