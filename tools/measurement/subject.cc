#include "tools/measurement/subject.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <vector>

#include "core/base/time.h"
#include "core/model/text/tokenizer.h"
#include "core/run/prepare_run.h"
#include "core/run/run_energy.h"
#include "tiers/compute/memory_bandwidth.h"

namespace tierd {
namespace {

constexpr double kMemorySeconds = 0.5;
// Fewer bytes may fit into the cores' caches, so that memory would not be measured.
constexpr uint64_t kLeastMemoryBytes = uint64_t{256} << 20;

// Tokens decoded after a text to fill caches of the last tokens: no cache keeps those of a prompt.
constexpr uint32_t kFillingTokens = 16;

StepTimes sum(const StepTimes& a, const StepTimes& b) {
  StepTimes total = a;
  total.steps += b.steps;
  total.tokens += b.tokens;
  total.wall_ns += b.wall_ns;
  total.compute_ns += b.compute_ns;
  total.stall_ns += b.stall_ns;
  total.predictor_ns += b.predictor_ns;
  total.reading_ns += b.reading_ns;
  total.read_bytes += b.read_bytes;
  total.resident_bytes += b.resident_bytes;
  total.streamed_bytes += b.streamed_bytes;
  total.messages += b.messages;
  return total;
}

SiteUse difference(const SiteUse& now, const SiteUse& before) {
  SiteUse use = now;
  use.rows -= before.rows;
  use.used -= before.used;
  use.hits -= before.hits;
  use.staged -= before.staged;
  use.misses -= before.misses;
  use.foreseen -= before.foreseen;
  use.wanted -= before.wanted;
  use.right -= before.right;
  use.measured_rows -= before.measured_rows;
  use.predicted -= before.predicted;
  use.active -= before.active;
  use.missed -= before.missed;
  use.mass -= before.mass;
  use.missed_mass -= before.missed_mass;
  return use;
}

HeldFigures memory_held(const Runtime& runtime) {
  const std::vector<Edition>& editions = runtime.plan().model.sites.editions;
  uint64_t filled = 0, empty = 0;
  for (const Residency& residency : runtime.residencies()) {
    for (EditionId e = 0; e < editions.size(); ++e) {
      const uint64_t valid = residency.valid_count(e);
      filled += valid * editions[e].slot_bytes;
      empty += (residency.max_slots(e) - valid) * editions[e].slot_bytes;
    }
  }
  uint64_t used = 0;
  const std::vector<TierMemory>& tiers = runtime.plan().memory.tiers;
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    used += runtime.budget(tier).used();
    filled += tiers[tier].tensors;
  }
  return {static_cast<double>(used - std::min(empty, used)), static_cast<double>(filled)};
}

}  // namespace

Result<std::unique_ptr<Subject>> Subject::create(const Arguments& arguments) {
  RuntimeOptions options;
  options.fit = arguments.fit;
  options.quiet = arguments.quiet;
  TIERD_ASSIGN(Sampler greedy, Sampler::create({.temperature = 0}));
  std::unique_ptr<Subject> subject(new Subject(arguments, std::move(greedy)));
  Config config = arguments.config;
  if (arguments.text) TIERD_TRY(subject->read_text(*arguments.text, config, options));
  TIERD_ASSIGN(RunPlan plan, prepare_run(config, options));
  TIERD_ASSIGN(subject->runtime_, Runtime::create(std::move(plan), options));
  TIERD_TRY(subject->runtime_->load());
  subject->session_ = std::make_unique<Session>(subject->runtime_->engine(), 0);
  return subject;
}

// Tokenizes the text. If no context was requested, sets the one that the tests need.
Status Subject::read_text(const TextArguments& text, Config& config, const RuntimeOptions& options) {
  TIERD_ASSIGN(const RunPlan plan, plan_run(config, options));
  const Store& store = plan.store;
  if (!store.manifest().has_vocab) {
    return Error{Code::not_found, store.directory(),
                 "the model brings no tokenizer; name one with --set model.tokenizer"};
  }
  TIERD_ASSIGN(const auto tokenizer, make_tokenizer(store.manifest().vocab, store.directory()));
  prompt_ = tokenizer->encode(text.text, true, true);
  // A single token would be a step of decoding.
  if (prompt_.size() < 2)
    return Error{Code::invalid_argument, text.file, "is too short, expected a few words"};
  uint64_t needed = prompt_.size();
  for (const Workload& test : arguments_.tests)
    needed = std::max(needed, prompt_.size() + uncounted(test.kind) + test.tokens);
  if (config.context == 0) config.context = static_cast<uint32_t>(std::min<uint64_t>(needed, UINT32_MAX));
  if (needed > config.context) {
    return Error{Code::invalid_argument, text.file,
                 fmt::format("its {} tokens, {} that fill the cache and those of -n need a context of {}, "
                             "found {} (-c)",
                             prompt_.size(), kFillingTokens, needed, config.context)};
  }
  return {};
}

Subject::~Subject() {
  session_.reset();
  if (runtime_) (void)runtime_->engine().drain();
  runtime_.reset();
  cores_.use();
  ::malloc_trim(0);  // so that the next allocations find the memory free
}

uint32_t Subject::uncounted(Workload::Kind kind) const {
  if (kind != Workload::Kind::decode) return 0;
  return has_text() ? kFillingTokens : 1;
}

Status Subject::begin_text() {
  session_->clear();
  TIERD_ASSIGN(const std::span<const float> logits, session_->append(prompt_));
  TIERD_ASSIGN(next_, greedy_.sample(logits));
  return {};
}

Status Subject::decode_one() {
  if (session_->position() == runtime_->engine().context()) session_->clear();
  if (!has_text()) {
    const uint32_t token = random_token();
    TIERD_TRY(session_->append({&token, 1}));
    return {};
  }
  if (session_->position() == 0) TIERD_TRY(begin_text());
  TIERD_ASSIGN(const std::span<const float> logits, session_->append({&next_, 1}));
  TIERD_ASSIGN(next_, greedy_.sample(logits));
  return {};
}

Status Subject::decode(uint32_t tokens) {
  for (uint32_t i = 0; i < tokens; ++i) TIERD_TRY(decode_one());
  return {};
}

Status Subject::prefill(uint32_t tokens) {
  std::vector<uint32_t> prompt(tokens);
  for (uint32_t& token : prompt) token = random_token();
  session_->clear();
  TIERD_TRY(session_->append(prompt));
  return {};
}

// Returns how many tokens were processed: test.tokens or more.
Result<uint64_t> Subject::run_for(const Workload& test, double seconds) {
  const uint64_t begin_ns = runtime_->dispatcher().now_ns();
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

std::vector<SiteForesight> Subject::foreseen_since(const std::vector<SiteUse>& before) const {
  const SiteTable& sites = runtime_->plan().model.sites;
  std::vector<SiteForesight> foreseen;
  for (SiteId s = 0; s < sites.size(); ++s) {
    const SiteUse use = difference(runtime_->scheduler().use()[s], before[s]);
    const bool whole = use.used == use.rows * sites[s].n;
    if (!whole || use.measured_rows != 0) foreseen.push_back({sites[s].n, use});
  }
  return foreseen;
}

Status Subject::warm_up(const Workload& test) {
  const Workload least{test.kind, test.kind == Workload::Kind::prefill ? test.tokens : 1};
  TIERD_TRY(run_for(least, arguments_.warmup_seconds));
  return {};
}

Result<Block> Subject::run(const Workload& test) {
  Engine& engine = runtime_->engine();
  const uint32_t ahead = test.kind == Workload::Kind::decode ? 1 : 0;
  if (has_text()) {
    TIERD_TRY(begin_text());
    TIERD_TRY(decode(uncounted(test.kind) - ahead));
  }
  TIERD_TRY(engine.drain());
  const ReadCounts flash = runtime_->flash_counts();
  // drain() has given up the neurons that were read ahead. An uncounted step reads ahead again, so that the
  // first counted step starts as in the middle of a text.
  TIERD_TRY(decode(ahead));
  if (!has_text()) session_->clear();
  engine.reset_times();
  const std::vector<SiteUse> use = runtime_->scheduler().use();
  const uint64_t wake_ups = runtime_->compute_counts().threads_woken + runtime_->agent_wake_ups();
  RunEnergy energy(*runtime_);
  const uint64_t begin_ns = runtime_->dispatcher().now_ns();

  Block block;
  TIERD_ASSIGN(block.tokens, run_for(test, arguments_.block_seconds));
  block.seconds = seconds_since(begin_ns);
  energy.look_now({engine.decode_times().wall_ns, engine.decode_times().tokens, block.tokens});
  block.energy = energy.totals();
  block.times = sum(engine.prefill_times(), engine.decode_times());
  block.wake_ups = runtime_->compute_counts().threads_woken + runtime_->agent_wake_ups() - wake_ups;
  block.foreseen = foreseen_since(use);
  block.memory = memory_held(*runtime_);
  block.cache = runtime_->strategies().instance("cache").metrics();
  TIERD_TRY(engine.drain());
  const ReadCounts after = runtime_->flash_counts();
  block.flash_ns = after.in_flight_ns - flash.in_flight_ns;
  block.checksum_ns = after.checksum_ns - flash.checksum_ns;
  block.reads = after.reads - flash.reads;
  block.device_bytes = after.read_bytes - flash.read_bytes;
  block.flash_steps = block.times.steps + ahead;

  const auto per_step = [&](uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(block.times.steps);
  };
  block.traffic.weights = per_step(block.times.resident_bytes + block.times.streamed_bytes);
  // A cache that promises nothing may have kept some neurons.
  TIERD_ASSIGN(const PlannedTraffic planned, runtime_->planned_traffic());
  block.traffic.must_read =
      std::min(static_cast<double>(planned.streamed_bytes), per_step(block.times.streamed_bytes));
  return block;
}

Result<double> Subject::memory_bandwidth() {
  TIERD_TRY(runtime_->engine().drain());
  const OnCores everywhere(cores_);
  const uint32_t threads = runtime_->threads();
  // Measured over the weights if they are large enough, so that no memory outside of the budget is used.
  const std::vector<std::span<const std::byte>> weights = runtime_->arena();
  uint64_t bytes = 0;
  for (const std::span<const std::byte> piece : weights) bytes += piece.size();
  if (bytes >= kLeastMemoryBytes) return measure_memory_read(threads, kMemorySeconds, weights);
  return measure_memory_read(threads, kMemorySeconds, kLeastMemoryBytes);
}

}  // namespace tierd
