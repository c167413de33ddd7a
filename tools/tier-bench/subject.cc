#include "tools/tier-bench/subject.h"

#include <malloc.h>

#include <algorithm>
#include <vector>

#include "core/base/time.h"
#include "tiers/compute/memory_bandwidth.h"

namespace tierd {
namespace {

constexpr double kMemorySeconds = 0.5;
// Less than this may lie in the cores' caches and says nothing about memory.
constexpr uint64_t kLeastMemoryBytes = uint64_t{256} << 20;

StepTimes sum(const StepTimes& a, const StepTimes& b) {
  StepTimes total = a;
  total.steps += b.steps;
  total.tokens += b.tokens;
  total.wall_ns += b.wall_ns;
  total.compute_ns += b.compute_ns;
  total.idle_ns += b.idle_ns;
  total.predictor_ns += b.predictor_ns;
  total.reading_ns += b.reading_ns;
  total.read_bytes += b.read_bytes;
  total.resident_bytes += b.resident_bytes;
  total.streamed_bytes += b.streamed_bytes;
  total.messages += b.messages;
  return total;
}

double seconds_since(uint64_t begin_ns) {
  return static_cast<double>(now_ns() - begin_ns) * 1e-9;
}

}  // namespace

Result<std::unique_ptr<Subject>> Subject::create(const Arguments& arguments) {
  RuntimeOptions options;
  options.fit = arguments.fit;
  options.quiet = arguments.quiet;
  std::unique_ptr<Subject> subject(new Subject(arguments));
  TIERD_ASSIGN(RunPlan plan, plan_run(arguments.config, options));
  TIERD_ASSIGN(subject->runtime_, Runtime::create(std::move(plan), options));
  TIERD_TRY(subject->runtime_->load());
  subject->session_ = std::make_unique<Session>(subject->runtime_->engine(), 0);
  return subject;
}

Subject::~Subject() {
  session_.reset();
  if (runtime_) (void)runtime_->engine().drain();
  runtime_.reset();
  cores_.use();
  ::malloc_trim(0);  // what comes next finds the memory free
}

Status Subject::decode_one() {
  if (session_->position() == runtime_->engine().context()) session_->clear();
  const uint32_t token = random_token();
  TIERD_TRY(session_->append({&token, 1}));
  return {};
}

Status Subject::prefill(uint32_t tokens) {
  std::vector<uint32_t> prompt(tokens);
  for (uint32_t& token : prompt) token = random_token();
  session_->clear();
  TIERD_TRY(session_->append(prompt));
  return {};
}

// The tokens that went through: test.tokens or more.
Result<uint64_t> Subject::run_for(const Workload& test, double seconds) {
  const uint64_t begin_ns = now_ns();
  uint64_t tokens = 0;
  while (tokens < test.tokens || seconds_since(begin_ns) < seconds) {
    if (test.kind == Workload::Kind::prefill) {
      TIERD_TRY(prefill(test.tokens));
      tokens += test.tokens;
    } else {
      TIERD_TRY(decode_one());
      ++tokens;
    }
  }
  return tokens;
}

Status Subject::warm_up(const Workload& test) {
  const Workload least{test.kind, test.kind == Workload::Kind::prefill ? test.tokens : 1};
  TIERD_TRY(run_for(least, arguments_.warmup_seconds));
  return {};
}

Result<Block> Subject::run(const Workload& test) {
  Engine& engine = runtime_->engine();
  TIERD_TRY(engine.drain());
  const ReadCounts flash = runtime_->flash_counts();
  // What was read ahead is given up now. A step that does not count reads ahead again, so that the first one
  // that counts finds what it would in the middle of a text.
  const uint64_t uncounted = test.kind == Workload::Kind::decode ? 1 : 0;
  if (uncounted != 0) TIERD_TRY(decode_one());
  session_->clear();
  engine.reset_times();
  const uint64_t wake_ups = runtime_->compute_counts().threads_woken + runtime_->agent_wake_ups();
  const uint64_t begin_ns = now_ns();

  Block block;
  TIERD_ASSIGN(block.tokens, run_for(test, arguments_.block_seconds));
  block.seconds = seconds_since(begin_ns);
  block.times = sum(engine.prefill_times(), engine.decode_times());
  block.wake_ups = runtime_->compute_counts().threads_woken + runtime_->agent_wake_ups() - wake_ups;
  TIERD_TRY(engine.drain());
  const ReadCounts after = runtime_->flash_counts();
  block.flash_ns = after.in_flight_ns - flash.in_flight_ns;
  block.checksum_ns = after.checksum_ns - flash.checksum_ns;
  block.flash_steps = block.times.steps + uncounted;

  const auto per_step = [&](uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(block.times.steps);
  };
  block.traffic.weights = per_step(block.times.resident_bytes + block.times.streamed_bytes);
  // A cache that promises nothing may still have kept something.
  TIERD_ASSIGN(const Runtime::Traffic planned, runtime_->planned_traffic());
  block.traffic.must_read =
      std::min(static_cast<double>(planned.streamed_bytes), per_step(block.times.streamed_bytes));
  return block;
}

Result<double> Subject::memory_bandwidth() {
  TIERD_TRY(runtime_->engine().drain());
  const OnCores everywhere(cores_);
  const uint32_t threads = runtime_->threads();
  // Over the weights themselves where there are enough: no memory is taken beside the budget.
  const std::span<const std::byte> weights = runtime_->arena();
  if (weights.size() >= kLeastMemoryBytes) return measure_memory_read(threads, kMemorySeconds, weights);
  return measure_memory_read(threads, kMemorySeconds, kLeastMemoryBytes);
}

}  // namespace tierd
