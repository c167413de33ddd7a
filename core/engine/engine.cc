#include "core/engine/engine.h"

#include <fmt/format.h>

#include <cmath>

namespace tierd {

Engine::Engine(EngineParts parts, std::function<Status()> recover)
    : parts_(parts),
      recover_(std::move(recover)),
      batch_(max_rows()),
      picked_(logit_rows()),
      chosen_(max_rows()) {}

Status Engine::run(Task<Status> task) {
  while (!task.done()) {
    if (!parts_.dispatcher->turn()) wait();
  }
  return task.take();
}

void Engine::wait() {
  const bool computing = parts_.scheduler->computing();
  const std::optional<uint64_t> slept = parts_.dispatcher->wait();
  TIERD_CHECK_MSG(slept.has_value(), "the kernel waits for nothing");
  if (!computing) stall_ns_ += *slept;
}

Status Engine::load(const std::function<void(uint64_t)>& progress) {
  TIERD_TRY(gone_);
  Status status = run(parts_.scheduler->fill(progress));
  return status.code() == Code::lost && rebuild_ ? rebuild() : status;
}

Status Engine::drain() {
  TIERD_TRY(gone_);
  const Status status = run(parts_.scheduler->drain());
  // Advice about completed requests may still be on its way.
  while (parts_.dispatcher->in_flight() != 0) {
    if (!parts_.dispatcher->turn()) wait();
  }
  return status;
}

Status Engine::resize(ArenaParts parts) {
  TIERD_TRY(gone_);
  return run(parts_.scheduler->resize(std::move(parts)));
}

void Engine::reset_times() {
  prefill_ = {};
  decode_ = {};
}

Task<Status> Engine::walk(uint32_t rows, std::span<const uint32_t> wanted, bool prefill) {
  std::vector<uint32_t> neurons;  // neurons of the embedding that hold the tokens' rows
  const auto& embedding = std::get<Rows>(plan().any().sites.front().cut);
  for (uint32_t i = 0; i < rows; ++i) neurons.push_back(batch_[i].token / embedding.rows);
  std::sort(neurons.begin(), neurons.end());
  neurons.erase(std::unique(neurons.begin(), neurons.end()), neurons.end());
  const ActiveSet tokens = ActiveSet::of(std::move(neurons));
  std::vector<uint64_t> sequences, of_wanted, of_chosen;
  for (uint32_t i = 0; i < rows; ++i) sequences.push_back(batch_[i].sequence);
  for (const uint32_t i : wanted) of_wanted.push_back(sequences[i]);
  const auto head = static_cast<SiteId>(plan().sites.size() - 1);

  for (SiteId site = 0; site < plan().sites.size(); ++site) {
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
    } else if (plan().sites[site].of_expert()) {
      pass.rows = static_cast<uint16_t>(choose_rows(plan().sites[site].rows, rows));
      if (pass.rows == 0) continue;
      pass.row_info = std::span(chosen_).first(pass.rows);
      of_chosen.clear();
      for (const RowInfo& row : pass.row_info) of_chosen.push_back(sequences[row.row]);
      pass.sequences = of_chosen;
    }
    pass.bypass_caches = prefill && rows > 1;
    if (plan().sites[site].given()) pass.given = &tokens;
    Status status = co_await parts_.scheduler->pass(site, pass);
    if (!status.ok()) {
      (void)co_await parts_.scheduler->end_step(step_);
      co_return status;
    }
  }
  co_return co_await parts_.scheduler->end_step(step_);
}

// Collects the rows that use an expert, according to the router's output of the layer. Returns their number.
uint32_t Engine::choose_rows(const RowChoice& choice, uint32_t rows) {
  const uint64_t stride = choice.place.stride;
  const float* const routing =
      parts_.dispatcher->values(parts_.agent, choice.place.offset, rows * stride) + choice.column;
  uint32_t chosen = 0;
  for (uint32_t i = 0; i < rows; ++i) {
    if (routing[i * stride] != 0) chosen_[chosen++] = batch_[i];
  }
  return chosen;
}

// Prepares a step: checks the strategies, and calls `between_steps_`.
Status Engine::ready() {
  TIERD_TRY(well());
  if (!between_steps_) return {};
  between_steps_();
  return well();
}

// Returns a fault of the strategies, or replaces a quarantined one.
Status Engine::well() {
  TIERD_TRY(gone_);
  TIERD_TRY(parts_.scheduler->take_fault());
  if (!parts_.scheduler->quarantined()) return {};
  TIERD_TRY(drain());
  return recover_();
}

Status Engine::begin_sequence(uint64_t sequence, std::string_view label) {
  TIERD_TRY(ready());
  TIERD_TRY(parts_.scheduler->begin_sequence(sequence, label));
  if (rebuild_) histories_[sequence].label = std::string(label);
  return {};
}

void Engine::end_sequence(uint64_t sequence) {
  parts_.scheduler->end_sequence(sequence);
  if (rebuild_) histories_[sequence].label.reset();
}

Status Engine::step_once(std::span<const RowInfo> rows, std::span<const uint32_t> wanted, bool prefill,
                         StepTimes& times) {
  std::copy(rows.begin(), rows.end(), batch_.begin());
  for (uint32_t i = 0; i < rows.size(); ++i) batch_[i].row = i;
  for (size_t k = 0; k < wanted.size(); ++k) picked_[k] = batch_[wanted[k]];

  const Scheduler& scheduler = *parts_.scheduler;
  const Dispatcher& dispatcher = *parts_.dispatcher;
  const SchedulerCounters before = scheduler.counters();
  const uint64_t stall = stall_ns_;
  const uint64_t predictor = scheduler.predictor_ns();
  const uint64_t reading = scheduler.fetching_ns();
  const uint64_t messages = dispatcher.messages();
  const uint64_t begin = dispatcher.now_ns();
  const Status status = run(walk(static_cast<uint32_t>(rows.size()), wanted, prefill));
  ++step_;
  if (status.code() == Code::lost) return status;  // the step is repeated
  const SchedulerCounters after = scheduler.counters();
  ++times.steps;
  times.tokens += rows.size();
  times.wall_ns += dispatcher.now_ns() - begin;
  times.compute_ns += after.compute_ns - before.compute_ns;
  times.stall_ns += stall_ns_ - stall;
  times.predictor_ns += scheduler.predictor_ns() - predictor;
  times.reading_ns += scheduler.fetching_ns() - reading;
  times.read_bytes += after.read_bytes - before.read_bytes;
  times.resident_bytes += after.resident_bytes - before.resident_bytes;
  times.streamed_bytes += after.streamed_bytes - before.streamed_bytes;
  times.messages += dispatcher.messages() - messages;
  return status;
}

// Gets parts without the lost agents, and loads the resident neurons and open sequences into them.
Status Engine::rebuild() {
  const uint64_t begin = parts_.dispatcher->now_ns();
  Status loaded;
  do {
    (void)drain();  // other messages under way end, or are lost too
    const std::optional<uint16_t> lost = parts_.dispatcher->first_lost();
    TIERD_CHECK(lost.has_value());
    const auto parts = rebuild_(*lost);
    if (!parts.ok()) return gone_ = parts.error();
    parts_ = *parts;
    TIERD_CHECK(max_rows() == batch_.size() && logit_rows() == picked_.size());
    ++losses_.agents;
    for (auto& [sequence, history] : histories_) history.computed = 0;
    loaded = run(parts_.scheduler->fill({}));
  } while (loaded.code() == Code::lost);
  TIERD_TRY(loaded);
  for (auto& [sequence, history] : histories_) {
    if (history.label) TIERD_TRY(parts_.scheduler->begin_sequence(sequence, *history.label));
  }
  losses_.ns += parts_.dispatcher->now_ns() - begin;
  return {};
}

// Computes keys and values again that were lost with an agent and that these rows need.
Status Engine::compute_again(std::span<const RowInfo> rows) {
  for (size_t i = 0; i < rows.size() && rebuild_; ++i) {
    const uint32_t sequence = rows[i].sequence;
    History& history = histories_[sequence];
    const auto behind_another = [&](const RowInfo& row) { return row.sequence == sequence; };
    if (history.computed >= rows[i].position || std::ranges::any_of(rows.first(i), behind_another)) continue;
    const uint64_t begin = parts_.dispatcher->now_ns();
    while (history.computed < rows[i].position) {
      const size_t end = std::min<size_t>(rows[i].position, history.computed + max_rows());
      std::vector<RowInfo> again;
      for (size_t at = history.computed; at < end; ++at)
        again.push_back({history.tokens[at], static_cast<uint32_t>(at), sequence, 0});
      StepTimes not_reported;
      TIERD_TRY(step_once(again, {}, true, not_reported));
      history.computed = end;
      losses_.tokens += again.size();
    }
    losses_.ns += parts_.dispatcher->now_ns() - begin;
  }
  return {};
}

void Engine::remember(std::span<const RowInfo> rows) {
  for (const RowInfo& row : rows) {
    History& history = histories_[row.sequence];
    TIERD_CHECK(row.position <= history.tokens.size());
    history.tokens.resize(row.position);
    history.tokens.push_back(row.token);
    history.computed = history.tokens.size();
  }
}

Result<std::span<const float>> Engine::step(std::span<const RowInfo> rows, std::span<const uint32_t> wanted,
                                            bool prefill) {
  TIERD_CHECK(!rows.empty() && rows.size() <= batch_.size() && wanted.size() <= picked_.size());
  TIERD_TRY(ready());
  StepTimes& times = prefill ? prefill_ : decode_;
  Status status;
  for (;;) {
    status = compute_again(rows);
    if (status.ok()) status = step_once(rows, wanted, prefill, times);
    if (status.code() != Code::lost || !rebuild_) break;
    TIERD_TRY(rebuild());
  }
  TIERD_TRY(status);
  if (rebuild_) remember(rows);
  const ActivationPlace& logits = plan().sites.all.back().output;
  const uint64_t floats = wanted.size() * logits.stride;
  const std::span given(parts_.dispatcher->values(parts_.agent, logits.offset, floats), floats);
  if (given.data() != nullptr) TIERD_TRY(expect_numbers(rows, wanted, given));
  return given;
}

Status Engine::expect_numbers(std::span<const RowInfo> rows, std::span<const uint32_t> wanted,
                              std::span<const float> given) const {
  const uint64_t stride = plan().sites.all.back().output.stride;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto of_row = given.subspan(i * stride, vocab_size());
    if (std::ranges::all_of(of_row, [](float logit) { return std::isfinite(logit); })) continue;
    return Error{
        Code::corrupt, "logits",
        fmt::format("behind token {} at position {} some are not finite: what the weights make of this "
                    "text is beyond the range of its numbers, so that no next token can be chosen",
                    rows[wanted[i]].token, rows[wanted[i]].position)};
  }
  return {};
}
}  // namespace tierd
