#include "core/engine/batcher.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace tierd {
namespace {

size_t common_prefix(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

Batcher::Batcher(Engine& engine, Options options)
    : engine_(engine), options_(std::move(options)), sequences_(options_.sequences) {
  TIERD_CHECK(options_.sequences != 0 && options_.sequences <= engine.logit_rows());
  TIERD_CHECK(options_.drafters.empty() || options_.drafters.size() == options_.sequences);
}

Batcher::~Batcher() {
  cancel_all();
}

Result<Batcher::Id> Batcher::add(Text text) {
  TIERD_CHECK(text.prompt != nullptr && !text.prompt->empty() && text.continuation != nullptr);
  for (const uint32_t token : *text.prompt) {
    if (token < engine_.vocab_size()) continue;
    return Error{
        Code::invalid_argument, "token",
        fmt::format("{}, expected a number below the vocabulary's size {}", token, engine_.vocab_size())};
  }
  if (text.prompt->size() > engine_.context()) {
    return Error{Code::no_space, "context",
                 fmt::format("{} tokens do not fit in a context of {}; set a larger one with -c",
                             text.prompt->size(), engine_.context())};
  }
  if (continued_ + waiting_.size() >= options_.sequences + options_.most_waiting) {
    return Error{
        Code::no_space, "queue",
        fmt::format("{} texts are generated and {} wait; no more may wait", continued_, waiting_.size())};
  }
  waiting_.push_back({++last_id_, std::move(text)});
  return last_id_;
}

void Batcher::cancel(Id id) {
  const auto waits =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& w) { return w.id == id; });
  if (waits != waiting_.end()) {
    const std::shared_ptr<Continuation> continuation = std::move(waits->text.continuation);
    waiting_.erase(waits);
    ++counters_.texts;
    continuation->ended(TextEnd::cancelled, {});
    return;
  }
  for (Sequence& sequence : sequences_) {
    if (sequence.active && sequence.active->id == id) return end(sequence, TextEnd::cancelled, {});
  }
}

void Batcher::cancel_all() {
  while (!waiting_.empty()) cancel(waiting_.front().id);
  for (Sequence& sequence : sequences_) {
    if (sequence.active) end(sequence, TextEnd::cancelled, {});
  }
}

// The text that has waited longest is admitted first.
void Batcher::admit() {
  while (!waiting_.empty() && continued_ < sequences_.size()) {
    Text text = std::move(waiting_.front().text);
    const Id id = waiting_.front().id;
    waiting_.pop_front();
    Sequence& sequence = sequences_[place_for(text)];
    // At least one token is computed, for its logits.
    size_t kept = std::min(common_prefix(sequence.tokens, *text.prompt), text.prompt->size() - 1);
    if (text.prompt_logits) kept = 0;
    sequence.tokens.resize(kept);
    counters_.cached_tokens += kept;
    sequence.active = Active{id, std::move(text), static_cast<uint32_t>(kept), 0};
    ++continued_;
    tell_progress(sequence);
  }
}

void Batcher::tell_progress(const Sequence& sequence) {
  const Active& active = *sequence.active;
  active.text.continuation->prompt_progress({static_cast<uint32_t>(active.text.prompt->size()), active.cached,
                                             static_cast<uint32_t>(sequence.tokens.size())});
}

// Returns the free sequence with the longest common prefix, if that is at least half of the cached tokens or
// of the prompt; else the least recently used one, whose tokens are least likely to be needed.
uint32_t Batcher::place_for(const Text& text) const {
  const Sequence* best = nullptr;
  size_t most = 0;
  const Sequence* oldest = nullptr;
  for (const Sequence& sequence : sequences_) {
    if (sequence.active) continue;
    if (oldest == nullptr || sequence.last_used < oldest->last_used) oldest = &sequence;
    const size_t common = common_prefix(sequence.tokens, *text.prompt);
    const bool worth_it = 2 * common >= std::min(sequence.tokens.size(), text.prompt->size());
    if (common > most && worth_it) best = &sequence, most = common;
  }
  return static_cast<uint32_t>((best != nullptr ? best : oldest) - sequences_.data());
}

// Requests guesses for each sequence, as far as a step has room beside the tokens that they follow. A failing
// drafter only costs speed, so its error gives no guesses.
void Batcher::guess(std::span<const uint32_t> sequences) {
  if (options_.drafters.empty() || sequences.empty()) return;
  const size_t rows = std::min(engine_.max_rows(), engine_.logit_rows());
  const size_t spare = rows > sequences.size() ? (rows - sequences.size()) / sequences.size() : 0;
  for (const uint32_t number : sequences) {
    Active& active = *sequences_[number].active;
    std::vector<uint32_t> said = sequences_[number].tokens;
    said.push_back(active.token);
    const size_t room = engine_.context() - said.size();
    active.guesses.clear();
    const size_t most = std::min({spare, room, size_t{options_.most_guesses}});
    if (most == 0) continue;
    auto guesses = options_.drafters[number]->draft(said, most);
    if (guesses.ok()) {
      active.guesses = std::move(*guesses);
    } else if (!told_of_drafter_) {
      told_of_drafter_ = true;
      spdlog::warn("{}; no tokens are guessed for this text now", guesses.error().line());
    }
  }
}

// Adds rows of the sequence as far as there is room: rows of its prompt, or the next token and its guesses.
void Batcher::add(Step& step, uint32_t number) const {
  const Sequence& sequence = sequences_[number];
  const Active& active = *sequence.active;
  const std::vector<uint32_t>& prompt = *active.text.prompt;
  const size_t done = sequence.tokens.size();
  Part part{number, 0, static_cast<uint32_t>(step.wanted.size()), 0};
  const size_t end = sequence.in_prompt() ? prompt.size() : done + 1 + active.guesses.size();
  for (size_t at = done; at < end; ++at) {
    const bool wanted = active.text.prompt_logits || at + 1 >= prompt.size();
    if (step.rows.size() == engine_.max_rows()) break;
    if (wanted && step.wanted.size() == engine_.logit_rows()) break;
    if (wanted) step.wanted.push_back(static_cast<uint32_t>(step.rows.size()));
    const uint32_t token = at < prompt.size() ? prompt[at]
                           : at == done       ? active.token
                                              : active.guesses[at - done - 1];
    step.rows.push_back({token, static_cast<uint32_t>(at), number, 0});
    ++part.rows;
    part.wanted += wanted ? 1 : 0;
  }
  if (part.rows != 0) step.parts.push_back(part);
}

Batcher::Step Batcher::compose() {
  Step step;
  if (!alone_.empty()) {
    sequences_[alone_.front()].active->guesses.clear();
    step.prefill = sequences_[alone_.front()].in_prompt();
    add(step, alone_.front());
    return step;
  }
  std::vector<uint32_t> prompts, others;
  for (uint32_t s = 0; s < sequences_.size(); ++s) {
    if (sequences_[s].active) (sequences_[s].in_prompt() ? prompts : others).push_back(s);
  }
  // Prompts are served in the order of their arrival.
  std::sort(prompts.begin(), prompts.end(),
            [&](uint32_t a, uint32_t b) { return sequences_[a].active->id < sequences_[b].active->id; });
  step.prefill = !prompts.empty() && (prompts_next_ || others.empty());
  prompts_next_ = !step.prefill;
  if (!step.prefill) guess(others);
  for (const uint32_t s : step.prefill ? prompts : others) add(step, s);
  return step;
}

Status Batcher::run(const Step& step) {
  for (const Part& part : step.parts) {
    Sequence& sequence = sequences_[part.sequence];
    if (sequence.begun) continue;
    TIERD_TRY(engine_.begin_sequence(part.sequence, sequence.active->text.label));
    sequence.begun = true;
  }
  TIERD_ASSIGN(const std::span<const float> logits, engine_.step(step.rows, step.wanted, step.prefill));
  ++counters_.steps;
  if (step.prefill) counters_.prompt_tokens += step.rows.size();
  size_t row = 0;
  for (const Part& part : step.parts) {
    std::vector<uint32_t>& tokens = sequences_[part.sequence].tokens;
    for (uint32_t i = 0; i < part.rows; ++i) tokens.push_back(step.rows[row++].token);
  }
  for (const Part& part : step.parts) go_on(part, step, logits);
  return {};
}

// Passes the results of its rows to the text.
void Batcher::go_on(const Part& part, const Step& step, std::span<const float> logits) {
  Sequence& sequence = sequences_[part.sequence];
  Active& active = *sequence.active;
  const size_t stride = step.wanted.empty() ? 0 : logits.size() / step.wanted.size();
  const auto logits_of = [&](uint32_t wanted) {
    return logits.subspan((part.first_wanted + wanted) * stride, engine_.vocab_size());
  };
  Continuation& continuation = *active.text.continuation;
  if (step.prefill) {
    const auto done = static_cast<uint32_t>(sequence.tokens.size());
    if (active.text.prompt_logits) {
      for (uint32_t i = 0; i < part.wanted; ++i)
        continuation.prompt_logits(done - part.wanted + i, logits_of(i));
    }
    tell_progress(sequence);
    if (sequence.in_prompt()) return;
  }
  // A prompt gives one token. Other rows give one each, as long as the next row was the right guess.
  uint32_t row = step.prefill ? part.wanted - 1 : 0;
  for (;; ++row) {
    ++counters_.generated_tokens;
    const auto next = continuation.next(logits_of(row));
    const bool goes_on = next.ok() && next->has_value();
    if (goes_on && row + 1 < part.wanted && active.guesses[row] == **next) continue;
    if (!step.prefill) keep_right(part, step, row + 1);
    if (!next.ok()) return end(sequence, TextEnd::failed, next.error());
    if (!goes_on) return end(sequence, TextEnd::finished, {});
    if (sequence.tokens.size() == engine_.context()) return end(sequence, TextEnd::context_full, {});
    active.token = **next;
    return;
  }
}

// Discards the rows after the first `rows` of the part: wrong guesses, or guesses that the text no longer
// needs. Reports the kept rows to caches if the step had no other text's rows.
void Batcher::keep_right(const Part& part, const Step& step, uint32_t rows) {
  if (part.rows == 1) return;
  Sequence& sequence = sequences_[part.sequence];
  sequence.tokens.resize(sequence.tokens.size() - (part.rows - rows));
  if (step.parts.size() == 1) engine_.rows_kept(part.rows, rows);
  counters_.guesses += part.rows - 1;
  counters_.right_guesses += rows - 1;
  sequence.active->text.continuation->guessed(part.rows - 1, rows - 1);
}

Status Batcher::step() {
  admit();
  const Step step = compose();
  if (step.parts.empty()) return {};
  const bool alone = !alone_.empty();
  const Status status = run(step);
  if (status.code() == Code::cancelled) return status;
  const uint32_t first = step.parts.front().sequence;
  if (alone) std::erase(alone_, first);
  if (status.ok()) return {};
  if (step.parts.size() == 1) {
    end(sequences_[first], TextEnd::failed, status);
    return {};
  }
  for (const Part& part : step.parts) alone_.push_back(part.sequence);
  return {};
}

void Batcher::end(Sequence& sequence, TextEnd end, const Status& why) {
  const auto number = static_cast<uint32_t>(&sequence - sequences_.data());
  if (sequence.begun) {
    engine_.end_sequence(number);
    // The sequence is over, so its fault does not concern the next one.
    const Status fault = engine_.take_fault();
    if (!fault.ok()) spdlog::warn("{}", fault.error().line());
  }
  sequence.begun = false;
  sequence.last_used = ++clock_;
  std::erase(alone_, number);
  const std::shared_ptr<Continuation> continuation = std::move(sequence.active->text.continuation);
  sequence.active.reset();
  --continued_;
  ++counters_.texts;
  continuation->ended(end, why);
}

std::vector<Batcher::SequenceState> Batcher::sequences() const {
  std::vector<SequenceState> states;
  for (const Sequence& sequence : sequences_) {
    SequenceState state;
    state.tokens = sequence.tokens.size();
    if (sequence.active) {
      state.text = sequence.active->id;
      state.prompt_tokens = sequence.active->text.prompt->size();
      state.in_prompt = sequence.in_prompt();
    }
    states.push_back(state);
  }
  return states;
}

}  // namespace tierd
