#include "tests/kernel/scripted_agents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/agent/joint_run.h"

namespace tierd {
namespace {

size_t hand_over(std::vector<Done>& from, std::span<Done> to) {
  const size_t n = std::min(from.size(), to.size());
  std::copy_n(from.begin(), n, to.begin());
  from.erase(from.begin(), from.begin() + static_cast<ptrdiff_t>(n));
  return n;
}

}  // namespace

Submit ManualFlash::submit(const Message& message, const Payload& payload) {
  EXPECT_LT(held_, credits_);
  ++held_;
  if (message.op == Op::read || message.op == Op::move) {
    Read read{message, {payload.units.begin(), payload.units.end()}, {}};
    for (const Unit& unit : payload.units) read.extents.push_back(unit.unit);
    read.neurons.assign(payload.neurons.begin(), payload.neurons.end());
    read.lengths.assign(payload.lengths.begin(), payload.lengths.end());
    open.push_back(read);
    started.push_back(read);
    stamp(read, false);
    most_open = std::max(most_open, open.size());
  } else {
    (message.op == Op::cancel ? cancels : raises).push_back(message.about);
    answer(message.id, DoneStatus::ok, 0, 0);
  }
  return Submit::ok;
}

size_t ManualFlash::poll(std::span<Done> done) {
  const size_t n = hand_over(done_, done);
  held_ -= static_cast<uint32_t>(n);
  return n;
}

void ManualFlash::finish(size_t i, DoneStatus status, uint32_t first_bad, uint16_t error) {
  ASSERT_LT(i, open.size());
  const Read read = open[i];
  const std::vector<uint32_t>& extents = read.extents;
  const uint64_t bytes = extents.size() * kSlot;
  open.erase(open.begin() + static_cast<ptrdiff_t>(i));
  if (status == DoneStatus::ok) stamp(read, true);
  answer(read.message.id, status, status == DoneStatus::io_error ? error : 0, first_bad,
         status == DoneStatus::ok ? bytes : 0);
  if (status == DoneStatus::ok) done_.back().n_done = read.message.n_units;
  if (first_bad < extents.size()) done_.back().bad_extent = extents[first_bad];
}

bool ManualFlash::was_cancelled(const Read& read) const {
  return std::find(cancels.begin(), cancels.end(), read.message.id) != cancels.end();
}

// Writes each extent's number where its bytes belong, kUnread before the read ends. A move copies the number.
void ManualFlash::stamp(const Read& read, bool landed) {
  const Message& message = read.message;
  for (const Unit& unit : read.units) {
    uint32_t number = landed ? unit.unit : kUnread;
    if (landed && message.op == Op::move)
      std::memcpy(&number, pools_.at(message.from, unit.unit, sizeof number), sizeof number);
    std::memcpy(pools_.at(message.memory, unit.place, sizeof number), &number, sizeof number);
  }
}

void ManualFlash::answer(MessageId id, DoneStatus status, uint16_t error, uint32_t first_bad,
                         uint64_t bytes) {
  Done done;
  done.id = id;
  done.status = status;
  done.error = error;
  done.first_bad = first_bad;
  done.bytes = bytes;
  done_.push_back(done);
}

float input_value(SiteId site, uint32_t row, uint32_t column) {
  return static_cast<float>(100 * site + 10 * row + column);
}

float contribution_value(uint32_t row, uint32_t neuron) {
  return (row + neuron) % 3 == 0 ? 0 : static_cast<float>(1 + row + neuron);
}

float output_value(const Message& message) {
  return static_cast<float>(1 + 100 * message.step + message.site);
}

Submit RecordingCompute::submit(const Message& message, const Payload& payload) {
  EXPECT_LT(queue_.size() + done_.size(), credits_);
  queue_.push_back({message, payload});
  return Submit::ok;
}

Drive RecordingCompute::drive() {
  if (queue_.empty() || hold) return Drive::idle;
  const Request request = queue_.front();
  queue_.pop_front();
  if (request.message.op == Op::move || request.message.op == Op::resize) {
    rearrange(request);
  } else {
    ++runs;
    EXPECT_EQ(request.message.n_sites, request.payload.sites.size());
    each_site(request.message, request.payload,
              [&](const Message& one, const Payload& its, size_t) { compute(one, its); });
  }
  answer(request.message.id);
  return Drive::busy;
}

size_t RecordingCompute::poll(std::span<Done> done) {
  return hand_over(done_, done);
}

std::string RecordingCompute::text(uint16_t agent, const Computed& c) {
  std::string line = std::to_string(agent) + (c.neurons.empty() ? " run" : " compute");
  for (size_t i = 0; i < c.neurons.size(); ++i) line += (i == 0 ? " " : ",") + std::to_string(c.neurons[i]);
  for (size_t i = 0; i < c.takes.size(); ++i) line += (i == 0 ? " takes " : "; ") + c.takes[i];
  return line + (c.before ? " B" : "") + (c.after ? " A" : "");
}

Submit MovingCompute::submit(const Message& message, const Payload& payload) {
  if (message.op == Op::move) open_.push_back(message.id);
  if (message.op != Op::run) return mover_.submit(message, payload);
  waiting_.push_back({message, payload});
  return Submit::ok;
}

Drive MovingCompute::drive() {
  const auto is_among = [](const std::vector<MessageId>& moves, const MessageId& move) {
    return std::ranges::find(moves, move) != moves.end();
  };
  while (!waiting_.empty() && !is_among(open_, waiting_.front().message.about)) {
    const Request request = waiting_.front();
    waiting_.pop_front();
    if (is_among(failed_, request.message.about)) {
      done_.push_back({.id = request.message.id, .status = DoneStatus::cancelled});
    } else {
      (void)compute_.submit(request.message, request.payload);
    }
  }
  return compute_.drive();
}

size_t MovingCompute::poll(std::span<Done> done) {
  const size_t moved = mover_.poll(done);
  for (const Done& move : done.first(moved)) {
    std::erase(open_, move.id);
    if (move.status != DoneStatus::ok) failed_.push_back(move.id);
  }
  if (moved != 0) return moved;
  const size_t computed = compute_.poll(done);
  return computed != 0 ? computed : hand_over(done_, done);
}

float& RecordingCompute::at(const ActivationPlace& place, uint32_t row, uint32_t column) {
  const uint64_t at = place.offset * kPlaceUnit / sizeof(float) + uint64_t{row} * place.stride + column;
  if (buffers_.size() <= at) buffers_.resize(at + 1);
  return buffers_[at];
}

void RecordingCompute::give(const Message& message, const Give& give) {
  const uint64_t floats = uint64_t{message.rows} * give.stride;
  auto* const to =
      reinterpret_cast<float*>(pools_.activations(message.agent, give.place, floats * sizeof(float)).data());
  for (uint32_t r = 0; r < message.rows; ++r) {
    for (uint32_t c = give.first; c < give.first + give.columns; ++c)
      to[uint64_t{r} * give.stride + c] = at({give.place, give.stride}, r, c);
  }
}

// The agent that owns the values was told to give them. An input without a segment before is left by earlier
// passes.
void RecordingCompute::check_values(const Message& message, const Take& take) const {
  if (take.what == Take::What::input && !sites_[message.site].flow.before) return;
  for (uint32_t r = 0; r < message.rows; ++r) {
    for (uint32_t c = take.first; c < take.first + take.columns; ++c) {
      const float expected = take.what == Take::What::input    ? input_value(message.site, r, c)
                             : take.what == Take::What::choice ? contribution_value(r, c)
                                                               : output_value(message);
      EXPECT_EQ(take.values[uint64_t{r} * take.stride + c], expected) << "it was not given";
    }
  }
}

// Destroys the bytes that are not in use.
void RecordingCompute::rearrange(const Request& request) {
  const auto& [message, payload] = request;
  std::string line = std::to_string(message.agent) + (message.op == Op::move ? " move" : " use");
  const std::span<std::byte> arena = pools_.memory(message.memory).first(arena_bytes);
  std::vector<std::byte> kept(arena.size());
  for (const auto& [first, second] : payload.units) {
    const uint64_t from = first * kPlaceUnit, to = second * kPlaceUnit;
    line += " " + std::to_string(from / kSlot) + "-" + std::to_string(to / kSlot);
    if (fail_next) continue;
    if (message.op == Op::move) {
      std::memcpy(arena.data() + to, arena.data() + from, message.unit_bytes);
    } else {
      std::copy(arena.data() + from, arena.data() + to, kept.data() + from);
    }
  }
  if (message.op == Op::resize && !fail_next) std::copy(kept.begin(), kept.end(), arena.begin());
  if (order != nullptr) order->push_back(line);
}

void RecordingCompute::compute(const Message& message, const Payload& payload) {
  Computed computed{message.site,
                    message.edition,
                    message.step,
                    message.op,
                    (message.flags & kRunBefore) != 0,
                    (message.flags & kRunAfter) != 0,
                    {}};
  for (const Unit& unit : payload.units) {
    computed.neurons.push_back(unit.unit);
    check_stamps(message, unit.unit, pools_.at(message.memory, unit.place, kSlot));
  }
  EXPECT_EQ(message.op, Op::run);
  EXPECT_EQ(message.n_takes, payload.takes.size());
  EXPECT_EQ(message.n_gives, payload.gives.size());
  for (const Take& take : payload.takes) {
    computed.takes.push_back(take_text(sites_[message.site], take));
    check_values(message, take);
  }
  use_activations(message, payload, computed);
  for (const Give& asked : payload.gives) give(message, asked);
  if (order != nullptr) order->push_back(text(message.agent, computed));
  log.push_back(std::move(computed));
}

void RecordingCompute::check_stamps(const Message& message, uint32_t neuron, const std::byte* slot) const {
  EXPECT_NE(sites_.wanted(message.site, message.edition), kNoEdition);
  uint32_t stamp = 0;
  std::memcpy(&stamp, slot, sizeof stamp);
  EXPECT_EQ(stamp, sites_.editions[message.edition].extent_of(neuron)) << "the bytes are not the neuron's";
}

void RecordingCompute::use_activations(const Message& message, const Payload& payload, Computed& computed) {
  const Site& site = sites_[message.site];
  computed.partial = (message.flags & kPartial) != 0;
  computed.measured = (message.flags & kMeasure) != 0;
  computed.told = (message.flags & kTell) != 0;
  for (uint32_t r = 0; r < message.rows && computed.before && site.input.there(); ++r) {
    for (uint32_t j = 0; j < site.n_in; ++j) at(site.input, r, j) = input_value(message.site, r, j);
    for (uint32_t i = 0; site.choice.there() && i < site.n; ++i)
      at(site.choice, r, i) = contribution_value(r, i);
  }
  for (uint32_t r = 0; r < message.rows && !computed.neurons.empty(); ++r) {
    for (uint32_t c = 0; c < site.n_out; ++c) at(site.output, r, c) = output_value(message);
  }
  for (const uint32_t neuron : computed.neurons) {
    for (uint32_t r = 0; r < message.rows && (computed.measured || computed.told); ++r)
      at(site.contribution, r, neuron) = contribution_value(r, neuron);
    EXPECT_EQ(payload.masks.empty(), (message.flags & kMasked) == 0);
    if (!payload.masks.empty()) computed.rows[neuron] = payload.masks[neuron];  // at most 64 rows
  }
}

// Returns whose activations the take names. Checks that they are the right ones.
std::string RecordingCompute::take_text(const Site& site, const Take& take) const {
  const bool input = take.what == Take::What::input;
  const ActivationPlace& place = input                             ? site.input
                                 : take.what == Take::What::choice ? site.choice
                                                                   : site.output;
  const uint32_t width = input ? site.n_in : take.what == Take::What::choice ? site.n : site.n_out;
  EXPECT_EQ(take.stride, place.stride);
  std::string text = input ? "input" : take.what == Take::What::choice ? "choice" : "";
  for (const uint32_t neuron : take.neurons) text += (text.empty() ? "" : ",") + std::to_string(neuron);
  if (text.empty()) text = "sums";
  if (take.first != 0 || take.columns != width)
    text += " in " + std::to_string(take.first) + "-" + std::to_string(take.first + take.columns - 1);
  for (uint16_t agent = 1; agent < 16; ++agent) {
    if (pools_.activations(agent).empty()) continue;
    if (take.values == pools_.values(agent, place.offset, 1)) return text + " of " + std::to_string(agent);
  }
  return text + " of nobody";
}

void RecordingCompute::answer(MessageId id) {
  Done done;
  done.id = id;
  done.status = std::exchange(fail_next, false) ? DoneStatus::internal : DoneStatus::ok;
  done.first_bad = done.status == DoneStatus::ok ? 0 : first_bad;
  done_.push_back(done);
}

}  // namespace tierd
