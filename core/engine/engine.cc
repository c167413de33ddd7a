#include "core/engine/engine.h"

#include <cstdlib>
#include <utility>

#include "core/base/align.h"

namespace tierd {

Engine::Engine(Dispatcher& dispatcher, Scheduler& scheduler, const ModelPlan& plan, uint16_t agent,
               std::function<Status()> recover)
    : dispatcher_(dispatcher),
      scheduler_(scheduler),
      plan_(plan),
      agent_(agent),
      recover_(std::move(recover)),
      batch_(plan.any().max_rows),
      picked_(logit_rows()) {}

Status Engine::run(Task<Status> task) {
  while (!task.done()) {
    if (!dispatcher_.turn()) wait();
  }
  return task.take();
}

void Engine::wait() {
  const bool computing = scheduler_.computing();
  const std::optional<uint64_t> slept = dispatcher_.wait();
  TIERD_CHECK_MSG(slept.has_value(), "the kernel waits for nothing");
  if (!computing) stall_ns_ += *slept;
}

Status Engine::load(const std::function<void(uint64_t)>& progress) {
  return run(scheduler_.fill(progress));
}

Status Engine::drain() {
  const Status status = run(scheduler_.drain());
  // Advice about requests that are over may still be on its way.
  while (dispatcher_.in_flight() != 0) {
    if (!dispatcher_.turn()) wait();
  }
  return status;
}

Status Engine::resize(ArenaParts parts) {
  return run(scheduler_.resize(std::move(parts)));
}

void Engine::reset_times() {
  prefill_ = {};
  decode_ = {};
}

Task<Status> Engine::walk(uint32_t rows, std::span<const uint32_t> wanted, bool prefill) {
  std::vector<uint32_t> neurons;  // of the embedding, that hold the tokens' rows
  const auto& embedding = std::get<Rows>(plan_.any().sites.front().cut);
  for (uint32_t i = 0; i < rows; ++i) neurons.push_back(batch_[i].token / embedding.rows);
  std::sort(neurons.begin(), neurons.end());
  neurons.erase(std::unique(neurons.begin(), neurons.end()), neurons.end());
  const ActiveSet tokens = ActiveSet::of(std::move(neurons));
  std::vector<uint64_t> sequences, of_wanted;
  for (uint32_t i = 0; i < rows; ++i) sequences.push_back(batch_[i].sequence);
  for (const uint32_t i : wanted) of_wanted.push_back(sequences[i]);
  const auto head = static_cast<SiteId>(plan_.sites.size() - 1);

  for (SiteId site = 0; site < plan_.sites.size(); ++site) {
    Pass pass;
    pass.step = step_;
    pass.rows = static_cast<uint16_t>(rows);
    pass.row_info = std::span(batch_).first(pass.rows);
    pass.sequences = sequences;
    if (site == head) {
      if (wanted.empty()) break;
      pass.rows = static_cast<uint16_t>(wanted.size());
      pass.row_info = std::span(picked_).first(pass.rows);
      pass.sequences = of_wanted;
    }
    pass.bypass_caches = prefill;
    if (plan_.sites[site].given()) pass.given = &tokens;
    Status status = co_await scheduler_.pass(site, pass);
    if (!status.ok()) {
      (void)co_await scheduler_.end_step(step_);
      co_return status;
    }
  }
  co_return co_await scheduler_.end_step(step_);
}

// Before strategies are asked.
Status Engine::ready() {
  TIERD_TRY(well());
  if (!between_steps_) return {};
  between_steps_();
  return well();
}

// What is wrong with the strategies is told or put right.
Status Engine::well() {
  TIERD_TRY(scheduler_.take_fault());
  if (!scheduler_.quarantined()) return {};
  TIERD_TRY(drain());
  return recover_();
}

Status Engine::begin_sequence(uint64_t sequence, std::string_view label) {
  TIERD_TRY(ready());
  return scheduler_.begin_sequence(sequence, label);
}

Result<std::span<const float>> Engine::step(std::span<const RowInfo> rows, std::span<const uint32_t> wanted,
                                            bool prefill) {
  TIERD_CHECK(!rows.empty() && rows.size() <= batch_.size() && wanted.size() <= picked_.size());
  TIERD_TRY(ready());
  std::copy(rows.begin(), rows.end(), batch_.begin());
  for (uint32_t i = 0; i < rows.size(); ++i) batch_[i].row = i;
  for (size_t k = 0; k < wanted.size(); ++k) picked_[k] = batch_[wanted[k]];

  const SchedulerCounters before = scheduler_.counters();
  const uint64_t stall = stall_ns_;
  const uint64_t predictor = scheduler_.predictor_ns();
  const uint64_t reading = scheduler_.fetching_ns();
  const uint64_t messages = dispatcher_.messages();
  const uint64_t begin = dispatcher_.now_ns();
  const Status status = run(walk(static_cast<uint32_t>(rows.size()), wanted, prefill));
  ++step_;
  const SchedulerCounters& after = scheduler_.counters();
  StepTimes& times = prefill ? prefill_ : decode_;
  ++times.steps;
  times.tokens += rows.size();
  times.wall_ns += dispatcher_.now_ns() - begin;
  times.compute_ns += after.compute_ns - before.compute_ns;
  times.stall_ns += stall_ns_ - stall;
  times.predictor_ns += scheduler_.predictor_ns() - predictor;
  times.reading_ns += scheduler_.fetching_ns() - reading;
  times.read_bytes += after.read_bytes - before.read_bytes;
  times.resident_bytes += after.resident_bytes - before.resident_bytes;
  times.streamed_bytes += after.streamed_bytes - before.streamed_bytes;
  times.messages += dispatcher_.messages() - messages;
  TIERD_TRY(status);
  const ActivationPlace& logits = plan_.sites.all.back().output;
  const uint64_t floats = wanted.size() * logits.stride;
  return std::span(dispatcher_.values(agent_, logits.offset, floats), floats);
}

}  // namespace tierd
