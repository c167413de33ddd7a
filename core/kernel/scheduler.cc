#include "core/kernel/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/kernel/plugin_answer.h"
#include "core/kernel/set_view.h"
#include "core/kernel/site_view.h"

namespace tierd {
namespace {

constexpr uint32_t kMostAhead = 64;

// 0 of none. A loop without an early end, which becomes a few vector instructions.
uint8_t greatest(const std::vector<uint8_t>& numbers) {
  uint8_t most = 0;
  for (const uint8_t number : numbers) most = std::max(most, number);
  return most;
}

}  // namespace

Scheduler::Scheduler(Dispatcher& dispatcher, const std::vector<Site>& sites, Strategies& strategies,
                     const Placement& placement, std::deque<Residency>& residencies, Options options)
    : dispatcher_(dispatcher),
      sites_(sites),
      strategies_(strategies),
      placement_(placement),
      options_(std::move(options)),
      wished_(sites.size(), 0),
      ahead_(kMostAhead) {
  TIERD_CHECK(!options_.units.empty() && residencies.size() == options_.units.size() &&
              strategies.caches.size() == options_.units.size());
  for (uint32_t u = 0; u < options_.units.size(); ++u) {
    Intake::Options intake;
    intake.unit = static_cast<uint16_t>(u);
    intake.memory = options_.units[u].memory;
    intake.flash_agent = options_.flash_agent;
    intake.read_attempts = options_.read_attempts;
    intake.describe_extent = options_.describe_extent;
    intakes_.emplace_back(dispatcher, sites, strategies, residencies[u], std::move(intake), counters_,
                          changed_);
  }
}

Scheduler::~Scheduler() = default;

Task<Status> Scheduler::pass(SiteId site, Pass request) {
  Current current;
  current.site = site;
  current.pass = request;
  current.shares.resize(intakes_.size());
  current_ = &current;
  if (observer() != nullptr) observer()->pass_begins(site, request);

  Status& status = current.status;
  status = take_fault();
  if (status.ok()) status = predict(current);
  if (status.ok()) status = assign(current);
  if (status.ok()) status = encode(current);
  if (status.ok()) status = admit(current);

  while (status.ok()) {
    fetch();           // what is missing, as far as there is room
    compute(current);  // what is here at once, the rest as it arrives
    if (current.finished && !current.running()) break;
    pump();
    co_await changed_;
    for (const Intake& intake : intakes_) {
      if (status.ok()) status = intake.status();
    }
    if (status.ok() && stopping()) status = Error{Code::cancelled, sites_[site].name, "interrupted"};
  }
  while (current.running()) co_await changed_;

  // merge: on axis `row` each neuron's outputs have their own place; nothing is left to add up.
  for (Intake& intake : intakes_) intake.end();
  current_ = nullptr;
  if (!status.ok()) {
    for (const Intake& intake : intakes_) {
      while (intake.reading(site, request.step)) co_await changed_;
    }
    co_return status;
  }

  status = observe(current);
  if (status.ok()) status = look_ahead(current);
  if (status.ok()) status = take_fault();
  pump();
  co_return status;
}

Status Scheduler::predict(Current& current) {
  const Site& site = sites_[current.site];
  if (site.given) {
    TIERD_CHECK(current.pass.given != nullptr);
    current.active = *current.pass.given;
    return {};
  }
  TIERD_ASSIGN(current.active, ask_predictor(current));
  if (observer() != nullptr) observer()->activated(current.site, current.active);
  return {};
}

Result<ActiveSet> Scheduler::ask_predictor(const Current& current) {
  const Site& site = sites_[current.site];
  auto& predictor = strategies_.predictor;
  neurons_.resize(site.n);
  tierd_rows_view rows{};
  rows.size = sizeof rows;
  rows.rows = current.pass.rows;
  rows.seq = current.pass.sequences.data();
  tierd_set_out out{};
  out.size = sizeof out;
  out.cap = site.n;
  out.idx = neurons_.data();
  TIERD_TRY(predictor.call(&tierd_predictor_1::predict, "predict", current.site, &rows, &out));
  if (out.all != 0) return ActiveSet::all(site.n);
  if (out.n > site.n) return predictor.fault("predict", fmt::format("{} of {} neurons", out.n, site.n));
  neurons_.resize(out.n);
  if (const Status checked = check_neurons(neurons_, site.n); !checked.ok()) {
    return predictor.fault("predict", checked.error().detail);
  }
  return ActiveSet::of(neurons_);
}

Status Scheduler::assign(Current& current) {
  auto& balancer = strategies_.balancer;
  const auto units = static_cast<uint32_t>(intakes_.size());
  answers_.assign(current.active.size(), 0);
  const tierd_set_view set = set_view(current.site, current.active, current.pass.rows, TIERD_SET_PREDICTED);
  TIERD_TRY(balancer.call(&tierd_balancer_1::assign, "assign", &set, units, answers_.data()));
  if (const uint8_t most = greatest(answers_); most >= units)
    return balancer.fault("assign", fmt::format("unit {} of {}", most, units));
  if (units == 1) return {};
  std::vector<std::vector<uint32_t>> neurons(units);
  for (uint32_t i = 0; i < current.active.size(); ++i) neurons[answers_[i]].push_back(current.active[i]);
  for (uint32_t u = 0; u < units; ++u) current.shares[u].wanted = ActiveSet::of(std::move(neurons[u]));
  return {};
}

Status Scheduler::encode(const Current& current) {
  auto& quantizer = strategies_.quantizer;
  answers_.assign(current.active.size(), 0);
  const tierd_set_view set = set_view(current.site, current.active, current.pass.rows, TIERD_SET_PREDICTED);
  const tierd_encoding_view encoding = encoding_view(sites_[current.site]);
  const tierd_site_view site = site_view(current.site, sites_[current.site], encoding);
  TIERD_TRY(quantizer.call(&tierd_quantizer_1::choose, "choose", &site, &set, answers_.data()));
  if (const uint8_t most = greatest(answers_); most >= site.n_enc)
    return quantizer.fault("choose", fmt::format("encoding {} of {}", most, site.n_enc));
  return {};
}

Status Scheduler::admit(const Current& current) {
  for (uint32_t u = 0; u < intakes_.size(); ++u) {
    TIERD_TRY(intakes_[u].begin(current.site, current.pass.step, wanted_of(current, u),
                                current.pass.bypass_caches));
  }
  return {};
}

void Scheduler::fetch() {
  for (Intake& intake : intakes_) intake.fetch();
}

// Whether other units than the first take part.
bool Scheduler::shared(const Current& current) const {
  for (uint32_t u = 1; u < intakes_.size(); ++u) {
    if (current.shares[u].wanted.size() != 0) return true;
  }
  return false;
}

// Posts one message for everything that can be computed now. The segments around the site ride with the first
// and the last message of the pass; the agent keeps the order. Where other units take part, the segment
// before goes first and alone, since they wait for it, and the one after waits for their results.
void Scheduler::compute(Current& current) {
  const Site& site = sites_[current.site];
  if (current.finished || !dispatcher_.can_post()) return;
  // What is summed begins at zero; of what is concatenated, that which will not come.
  const bool partial = !site.given && (site.axis == Axis::neuron || current.active.size() < site.n);
  const auto before = static_cast<uint8_t>(kRunBefore | (partial ? kPartial : 0));
  TIERD_CHECK(site.n <= dispatcher_.max_units());
  units_.clear();
  bool merged = true;
  if (shared(current)) {
    if (!current.started) {
      Message prelude;
      prelude.op = Op::run;
      prelude.engine = EngineKind::compute;
      prelude.flags = before;
      current.prelude = post(current, 0, prelude, 0);
      current.started = true;
    }
    for (uint32_t u = 1; u < intakes_.size(); ++u) {
      if (current.shares[u].wanted.size() == 0) continue;
      compute_elsewhere(current, u);
      merged &= current.shares[u].results_there;
    }
    units_.clear();
    if (!dispatcher_.can_post()) return;
  }
  intakes_[0].hand_out(units_);
  const bool last = intakes_[0].handed_out() && merged;
  if (current.started && units_.empty() && !last) return;

  Message message;
  message.op = units_.empty() ? Op::run : Op::compute;
  message.engine = EngineKind::compute;
  message.flags = static_cast<uint8_t>((current.started ? 0 : before) | (last ? kRunAfter : 0));
  intakes_[0].computed_by(post(current, 0, message, 0));
  current.started = true;
  current.finished = last;
}

// The next messages for another unit's share: its input, its neurons as they come, and when all are computed,
// one copy of its results.
void Scheduler::compute_elsewhere(Current& current, uint32_t unit) {
  Share& share = current.shares[unit];
  Message copy;
  copy.op = Op::copy;
  copy.engine = EngineKind::copy;
  units_.clear();
  if (!share.input_posted) {
    if (!current.input_ready || !dispatcher_.can_post()) return;
    copy.flags = kInput;
    (void)post(current, unit, copy, 0);
    share.input_posted = true;
  }
  if (!share.input_here || !dispatcher_.can_post()) return;
  intakes_[unit].hand_out(units_);
  if (!units_.empty()) {
    Message message;
    message.op = Op::compute;
    message.engine = EngineKind::compute;
    if (sites_[current.site].axis == Axis::neuron && !std::exchange(share.begun, true))
      message.flags = kPartial;
    intakes_[unit].computed_by(post(current, unit, message, unit));
  }
  if (share.results_posted || share.running != 0 || !intakes_[unit].handed_out() || !dispatcher_.can_post())
    return;
  units_.clear();
  for (uint32_t i = 0; i < share.wanted.size(); ++i) units_.push_back({share.wanted[i], 0});
  (void)post(current, 0, copy, unit);
  share.results_posted = true;
}

// To a unit, about `units_`, which lie with `list_unit`: neurons in its memory, or what is to be copied in
// its activations.
MessageId Scheduler::post(Current& current, uint32_t unit, Message message, uint32_t list_unit) {
  const bool copies = message.op == Op::copy;
  message.agent = options_.units[unit].memory.agent;
  message.step = current.pass.step;
  message.site = current.site;
  message.rows = current.pass.rows;
  message.in = current.pass.row_info;
  const ComputeUnit& from = options_.units[list_unit];
  // Counted where the work is: a copy of results belongs to the unit whose results they are.
  ++current.shares[copies && unit == 0 ? list_unit : unit].running;
  if (copies) message.part = static_cast<uint16_t>(list_unit);
  return dispatcher_.post(message, units_, from.memory.agent,
                          copies ? from.activation_pool : from.memory.pool, *this);
}

Status Scheduler::observe(const Current& current) {
  const auto used_of = [&](const ActiveSet& set) {
    return set_view(domain(current.site), set, current.pass.rows, TIERD_SET_TRUE);
  };
  if (!sites_[current.site].given) {
    const tierd_set_view predicted =
        set_view(current.site, current.active, current.pass.rows, TIERD_SET_PREDICTED);
    const tierd_set_view used = used_of(current.active);
    TIERD_TRY(strategies_.predictor.call_if(&tierd_predictor_1::observe, "observe", &predicted, &used));
  }
  if (current.pass.bypass_caches) return {};
  for (uint32_t u = 0; u < intakes_.size(); ++u) {
    const tierd_set_view used = used_of(wanted_of(current, u));
    TIERD_TRY(strategies_.caches[u].call_if(&tierd_cache_1::touch, "touch", &used));
  }
  return {};
}

Status Scheduler::look_ahead(const Current& current) {
  auto& predictor = strategies_.predictor;
  if (!options_.prefetch || predictor.table.look_ahead == nullptr) return {};
  std::fill(ahead_.begin(), ahead_.end(), tierd_ahead{});
  tierd_ahead_out out{kMostAhead, 0, ahead_.data()};
  tierd_rows_view rows{};
  rows.size = sizeof rows;
  rows.rows = current.pass.rows;
  rows.seq = current.pass.sequences.data();
  TIERD_TRY(predictor.call(&tierd_predictor_1::look_ahead, "look_ahead", current.site, &rows, &out));
  if (out.n > kMostAhead) {
    return predictor.fault("look_ahead", fmt::format("{} wishes where {} have room", out.n, kMostAhead));
  }
  const auto n_sites = static_cast<uint32_t>(sites_.size());
  for (uint32_t i = 0; i < out.n; ++i) {
    const tierd_ahead& item = ahead_[i];
    const uint64_t place = uint64_t{current.site} + item.distance;
    if (item.site >= n_sites || item.distance == 0 || place % n_sites != item.site) {
      return predictor.fault("look_ahead", fmt::format("site {} does not lie {} sites after {}", item.site,
                                                       item.distance, current.site));
    }
    const uint64_t step = current.pass.step + place / n_sites;
    if (sites_[item.site].given || wished_[item.site] > step || step >= kNoStep) continue;
    wished_[item.site] = step + 1;
    const Status listed = neurons_of(item, sites_[item.site].n, neurons_);
    if (!listed.ok()) return predictor.fault("look_ahead", listed.error().detail);
    at_home_.resize(intakes_.size());
    if (intakes_.size() == 1) {
      at_home_[0].swap(neurons_);
    } else {
      for (auto& neurons : at_home_) neurons.clear();
      for (const uint32_t neuron : neurons_)
        at_home_[placement_.home(domain(item.site), neuron)].push_back(neuron);
    }
    for (uint32_t u = 0; u < intakes_.size(); ++u) {
      TIERD_TRY(
          intakes_[u].wish(item.site, static_cast<uint32_t>(step), at_home_[u], current.pass.bypass_caches));
    }
  }
  return {};
}

Status Scheduler::end_step(uint32_t step) {
  if (observer() != nullptr) observer()->step_ends(step);
  for (Intake& intake : intakes_) intake.end_step(step);
  Status told;
  for (auto& cache : strategies_.caches) {
    const Status answer = cache.call_if(&tierd_cache_1::end_step, "end_step");
    if (told.ok()) told = answer;
  }
  if (observer() != nullptr) {
    uint64_t digest = 0;
    for (const Intake& intake : intakes_) digest = digest * 0x100000001b3 ^ intake.residency().digest();
    observer()->settled(digest);
  }
  TIERD_TRY(told);
  return take_fault();
}

Status Scheduler::take_fault() {
  TIERD_TRY(std::exchange(fault_, Status()));
  for (Intake& intake : intakes_) TIERD_TRY(intake.take_fault());
  return {};
}

Task<Status> Scheduler::fill(std::function<void(uint64_t)> progress) {
  if (observer() != nullptr) observer()->fill_begins();
  for (uint32_t u = 0; u < intakes_.size(); ++u) {
    auto asked = wanted_at_start(strategies_.caches[u], sites_);
    if (!asked.ok()) co_return asked.error();
    Status filled = co_await intakes_[u].fill(std::move(*asked), progress, [this] { return stopping(); });
    if (!filled.ok()) co_return filled;
  }
  co_return Status{};
}

Task<Status> Scheduler::drain() {
  if (observer() != nullptr) observer()->drain_begins();
  std::fill(wished_.begin(), wished_.end(), 0);
  for (Intake& intake : intakes_) intake.give_up_all();
  for (const Intake& intake : intakes_) {
    while (!intake.idle()) co_await changed_;
  }
  // The plugins' quarantine tells it from here on.
  fault_ = {};
  for (Intake& intake : intakes_) (void)intake.take_fault();
  co_return Status{};
}

bool Scheduler::stopping() {
  if (!dispatcher_.waiter().stopping()) return false;
  if (observer() != nullptr) observer()->interrupted();
  return true;
}

Status Scheduler::begin_sequence(uint64_t sequence) {
  if (observer() != nullptr) observer()->sequence_begins(sequence);
  return strategies_.predictor.call_if(&tierd_predictor_1::begin_sequence, "begin_sequence", sequence);
}

void Scheduler::end_sequence(uint64_t sequence) {
  if (observer() != nullptr) observer()->sequence_ends(sequence);
  auto& predictor = strategies_.predictor;
  if (predictor.quarantined()) return;  // its fault was told
  const Status answer = predictor.call_if(&tierd_predictor_1::end_sequence, "end_sequence", sequence);
  if (fault_.ok()) fault_ = answer;
}

bool Scheduler::quarantined() const {
  return strategies_.predictor.quarantined() || strategies_.quantizer.quarantined() ||
         strategies_.balancer.quarantined() ||
         std::any_of(strategies_.caches.begin(), strategies_.caches.end(),
                     [](const auto& cache) { return cache.quarantined(); });
}

void Scheduler::pump() {
  for (Intake& intake : intakes_) intake.pump();
}

uint32_t Scheduler::unit_of(uint16_t agent) const {
  uint32_t unit = 0;
  while (options_.units[unit].memory.agent != agent) ++unit;
  return unit;
}

void Scheduler::on_done(const Message& message, const Done& done) {
  counters_.compute_ns += done.done_ns - done.start_ns;
  TIERD_CHECK(current_ != nullptr);
  Current& current = *current_;
  uint32_t unit = unit_of(message.agent);
  if (message.op == Op::copy) {
    if (unit == 0) unit = message.part;  // results: those of this unit
    Share& share = current.shares[unit];
    ((message.flags & kInput) != 0 ? share.input_here : share.results_there) = true;
  } else {
    intakes_[unit].computed(message.id);
    current.input_ready |= message.id == current.prelude;
  }
  --current.shares[unit].running;
  if (done.status != DoneStatus::ok && current.status.ok()) {
    current.status = Error{Code::internal, sites_[message.site].name,
                           fmt::format("compute failed with status {}", static_cast<int>(done.status))};
  }
  dispatcher_.wake(changed_);
}

}  // namespace tierd
