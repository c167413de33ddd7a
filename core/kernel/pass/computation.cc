#include "core/kernel/pass/computation.h"

#include <algorithm>
#include <utility>

#include "core/kernel/pass/run_error.h"
#include "core/kernel/pass/takes.h"

namespace tierd {

Computation::Computation(Dispatcher& dispatcher, const SiteTable& sites, const Topology& topology,
                         const PassPlan& plan, Notice& changed)
    : dispatcher_(dispatcher), sites_(sites), topology_(topology), plan_(plan), changed_(changed) {}

Computation::~Computation() = default;

void Computation::begin(SiteId site, const Pass& pass, bool gives_next) {
  site_ = site;
  pass_ = pass;
  gives_next_ = gives_next;
  asked_ = {};
  units_.assign(topology_.units.size(), {});
  const Flow& flow = sites_[site].flow;
  mergers_ = 0;
  for (const UnitColumns& columns : flow.output)
    mergers_ += std::exchange(units_[columns.unit].merges, true) ? 0 : 1;
  before_ = {};
  input_ready_ = !flow.before;
  status_ = {};
}

void Computation::run_before() {
  const UnitId holder = site().flow.holder();
  TIERD_CHECK(site().flow.before && holder != kNoUnit);
  before_ = post_before(holder);
}

void Computation::post() {
  TIERD_CHECK(site().n <= dispatcher_.max_units());
  for (UnitId u = 0; u < units(); ++u) post_to(u);
}

// Posts one message an edition for all neurons that the unit can compute now. The segments before and after
// are part of the messages with the first and the last neurons, and the agent keeps the order. There are two
// exceptions. The segment before runs first and alone if other units wait for it. The segment after waits for
// other units' results, and runs alone if other units wait for this unit's results.
void Computation::post_to(UnitId u) {
  UnitPass& own = units_[u];
  const bool holds = site().flow.holder() == u && (site().flow.before || computes(u));
  while (!own.finished && dispatcher_.can_post()) {
    list_.clear();
    Message message;
    if (holds && !own.begun && site().flow.before && others_compute(u)) {
      before_ = post_before(u);
      continue;
    }
    if (holds || input_ready_) {
      const UnitPass::HandedOut handed_out = own.hand_out(list_, site().added);
      if (handed_out.edition != kNoEdition) message.edition = handed_out.edition;
      message.about = handed_out.move;
    }
    std::span<const Take> takes;
    const bool takes_input = !list_.empty() && !holds && !std::exchange(own.has_input, true);
    const bool last = own.merges && own.handed_out() && !takes_input && (list_.empty() || mergers_ == 1) &&
                      others_are_done(u);
    if (list_.empty() && !last && (own.begun || !holds)) return;
    if (takes_input) takes = input_of(u);
    if (last) {
      message.flags |= kRunAfter;
      takes = results_of_others(u);
    }
    own.computed_by(post(u, message, takes));
    own.finished = last;
  }
}

// Posts the segment before alone, if other units or the kernel wait for the input.
MessageId Computation::post_before(UnitId u) {
  list_.clear();
  return post(u, {}, {}, true);
}

// Posts `message` to a unit, for `list_`, neurons in its memory. `takes` live until the pass is over.
MessageId Computation::post(UnitId u, Message message, std::span<const Take> takes, bool gives_input) {
  const ComputeUnit& to = topology_.units[u];
  UnitPass& own = units_[u];
  message.op = Op::run;
  message.agent = to.agent;
  message.lane = to.lane;
  message.memory = to.memory;
  message.step = pass_.step;
  message.site = site_;
  message.rows = pass_.rows;
  if (!std::exchange(own.begun, true) && site().flow.holder() == u) message.flags |= kRunBefore;
  // Where results are placed, other units take only the results that the unit has computed, so the rest need
  // not be cleared.
  const bool clears = own.merges ? asked_.incomplete : site().added && !list_.empty();
  if (clears && !std::exchange(own.cleared, true)) message.flags |= kPartial;
  Payload payload{.units = list_,
                  .rows = pass_.row_info,
                  .masks = {},
                  .takes = takes,
                  .gives = gives_of(u, message.flags, gives_input)};
  if (!list_.empty()) {
    ++own.computing;
    if (asked_.measure) message.flags |= kMeasure;
    if (asked_.tell) message.flags |= kTell;
    if (!asked_.masks.empty()) {
      message.flags |= kMasked;
      payload.masks = asked_.masks;
    }
  }
  ++own.running;
  return dispatcher_.post(message, payload, *this);
}

bool Computation::others_compute(UnitId unit) const {
  for (UnitId u = 0; u < units(); ++u) {
    if (u != unit && computes(u)) return true;
  }
  return false;
}

// Returns whether the results of the other units are complete.
bool Computation::others_are_done(UnitId unit) const {
  for (UnitId u = 0; u < units(); ++u) {
    if (u != unit && !(units_[u].handed_out() && units_[u].computing == 0)) return false;
  }
  return true;
}

std::span<const Take> Computation::input_of(UnitId unit) {
  return take_input(dispatcher_, topology_, site(), unit, pass_.rows, units_[unit].input);
}

// Takes results in the order of the units, which is the order of the additions.
std::span<const Take> Computation::results_of_others(UnitId unit) {
  std::vector<Take>& results = units_[unit].results;
  for (UnitId u = 0; u < units(); ++u) {
    if (u != unit && computes(u))
      take_results(dispatcher_, topology_, site(), {unit, u}, pass_.rows, plan_.shares(u), results);
  }
  return results;
}

// Returns the activations that others need from a message with `list_`. The last message of a unit that
// computes gives the results of all its messages.
std::span<const Give> Computation::gives_of(UnitId u, uint8_t flags, bool input) {
  gives_.clear();
  const Site& s = site();
  const bool runs_after = (flags & kRunAfter) != 0;
  if ((flags & kRunBefore) != 0 && s.flow.before && (input || asked_.measure)) {
    give(s.input, {}, s.n_in, gives_);
    if (s.chosen()) give(s.choice, {}, s.n, gives_);
  }
  if (!list_.empty() && units_[u].handed_out()) {
    for (const UnitColumns& columns : s.flow.output) {
      if (columns.unit != u) give(s.output, columns, s.n_out, gives_);
    }
    if (asked_.measure || asked_.tell) give(s.contribution, {}, s.n, gives_);
  }
  if (!runs_after) return gives_;
  if (site_ + 1 == sites_.size()) {
    give(s.output, {}, s.n_out, gives_);  // to the caller
  } else if (const Site& next = sites_[site_ + 1]; !next.flow.before && (units() > 1 || gives_next_)) {
    for (const UnitColumns& columns : next.flow.input) {
      if (columns.unit == u) give(next.input, columns, next.n_in, gives_);
    }
  }
  return gives_;
}

bool Computation::running() const {
  return std::ranges::any_of(units_, [](const UnitPass& unit) { return unit.running != 0; });
}

bool Computation::over() const {
  return !running() &&
         std::ranges::all_of(units_, [](const UnitPass& unit) { return unit.finished || !unit.merges; });
}

Status Computation::status() const {
  TIERD_TRY(status_);
  for (const UnitPass& unit : units_) TIERD_TRY(unit.status());
  return {};
}

UnitId Computation::unit_of(uint16_t agent) const {
  UnitId unit = 0;
  while (topology_.units[unit].agent != agent) ++unit;
  return unit;
}

void Computation::on_done(const Message& message, const Done& done) {
  busy_.add(done.start_ns, done.done_ns);
  UnitPass& unit = units_[unit_of(message.agent)];
  unit.computed(message.id);
  if (units() > 1) unit.busy.add(done.start_ns, done.done_ns);
  if (done.status == DoneStatus::ok) unit.computed_neurons += message.n_units;
  input_ready_ |= message.id == before_;
  --unit.running;
  if (message.n_units != 0) --unit.computing;
  // A cancelled run lacks neurons that failed to arrive; the gathering's status has the reason.
  const bool told = done.status == DoneStatus::cancelled && !unit.status().ok();
  if (done.status != DoneStatus::ok && status_.ok() && !told)
    status_ = run_error(dispatcher_, message, done, site().name);
  dispatcher_.wake(changed_);
}

}  // namespace tierd
