#include "core/kernel/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/kernel/plugin_answer.h"
#include "core/kernel/set_view.h"
#include "core/kernel/site_view.h"

namespace tierd {
namespace {

constexpr uint32_t kMostAhead = 64;
constexpr uint32_t kOneUnit = 1;  // computing units, until several agents compute

}  // namespace

Scheduler::Scheduler(Dispatcher& dispatcher, const std::vector<Site>& sites, Strategies& strategies,
                     Residency& residency, Options options)
    : dispatcher_(dispatcher),
      sites_(sites),
      strategies_(strategies),
      residency_(residency),
      options_(std::move(options)),
      staging_(options_.staging_blocks, options_.block_bytes),
      wished_(sites.size(), 0) {}

Scheduler::~Scheduler() = default;

Task<Status> Scheduler::pass(SiteId site, Pass request) {
  Current current;
  current.site = site;
  current.pass = request;
  current_ = &current;
  if (observer() != nullptr) observer()->pass_begins(site, request);

  Status status = take_fault();
  if (status.ok()) status = predict(current);
  if (status.ok()) status = assign(current);
  if (status.ok()) status = encode(current);
  if (status.ok()) status = admit(current);
  if (!status.ok()) current.error = status.error();

  while (!current.failed()) {
    fetch(current);    // what is missing, as far as there is room
    compute(current);  // what is here at once, the rest as it arrives
    if (current.finished && current.running == 0) break;
    pump_wishes();
    co_await changed_;
    if (!current.failed() && stopping()) {
      current.error = {Code::cancelled, sites_[site].name, "interrupted"};
    }
  }
  while (current.running != 0) co_await changed_;

  // merge: on axis `row` the agent has written each neuron's outputs to their place; nothing is left to add
  // up.
  release(current);
  current_ = nullptr;
  if (current.failed()) {
    while (reading(site, request.step)) co_await changed_;
    co_return current.error;
  }

  status = observe(current);
  if (status.ok()) status = look_ahead(current);
  if (status.ok()) status = take_fault();
  pump_wishes();
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
  std::vector<uint32_t> neurons(site.n);
  tierd_rows_view rows{};
  rows.size = sizeof rows;
  rows.rows = current.pass.rows;
  rows.seq = current.pass.sequences.data();
  tierd_set_out out{};
  out.size = sizeof out;
  out.cap = site.n;
  out.idx = neurons.data();
  TIERD_TRY(predictor.call(&tierd_predictor_1::predict, "predict", current.site, &rows, &out));
  if (out.all != 0) return ActiveSet::all(site.n);
  if (out.n > site.n) return predictor.fault("predict", fmt::format("{} of {} neurons", out.n, site.n));
  neurons.resize(out.n);
  if (const Status checked = check_neurons(neurons, site.n); !checked.ok()) {
    return predictor.fault("predict", checked.error().detail);
  }
  return ActiveSet::of(std::move(neurons));
}

Status Scheduler::assign(const Current& current) {
  auto& balancer = strategies_.balancer;
  answers_.assign(current.active.size(), 0);
  const tierd_set_view set = set_view(current.site, current.active, current.pass.rows, TIERD_SET_PREDICTED);
  TIERD_TRY(balancer.call(&tierd_balancer_1::assign, "assign", &set, kOneUnit, answers_.data()));
  for (const uint8_t u : answers_) {
    if (u >= kOneUnit) return balancer.fault("assign", fmt::format("unit {} of {}", u, kOneUnit));
  }
  return {};
}

Status Scheduler::encode(const Current& current) {
  auto& quantizer = strategies_.quantizer;
  answers_.assign(current.active.size(), 0);
  const tierd_set_view set = set_view(current.site, current.active, current.pass.rows, TIERD_SET_PREDICTED);
  const tierd_encoding_view encoding = encoding_view(sites_[current.site]);
  const tierd_site_view site = site_view(current.site, sites_[current.site], encoding);
  TIERD_TRY(quantizer.call(&tierd_quantizer_1::choose, "choose", &site, &set, answers_.data()));
  for (const uint8_t l : answers_) {
    if (l >= site.n_enc) return quantizer.fault("choose", fmt::format("encoding {} of {}", l, site.n_enc));
  }
  return {};
}

// Tells apart what is here, what is coming, and what must be asked for.
Status Scheduler::admit(Current& current) {
  const SiteId site = current.site;
  std::vector<Fetch*> coming(sites_[site].n, nullptr);
  current.source.assign(sites_[site].n, nullptr);
  std::vector<Fetch*> ours;
  for (Fetch& fetch : fetches_) {
    const bool for_this_pass = fetch.site == site && fetch.step == current.pass.step;
    if (domain(fetch.site) != domain(site) || fetch.unwanted) continue;
    if (!fetch.into_arena() && !for_this_pass) continue;
    for (const uint32_t neuron : fetch.neurons) coming[neuron] = &fetch;
    ours.push_back(&fetch);
  }
  // A wish that was not worked off in time becomes part of the demand, as far as it was right.
  std::vector<bool> planned(sites_[site].n, false);
  for (Plan wish = take_wish(site, current.pass.step); !wish.done(); ++wish.next) {
    const uint32_t neuron = wish.neurons[wish.next];
    const uint8_t verdict = wish.verdicts[wish.next];
    // What is to pass through staging may have come by way of an alias since.
    const bool needed = verdict == TIERD_VERDICT_KEEP ||
                        (coming[neuron] == nullptr && residency_.slot(site, neuron) == kNoSlot);
    if (needed && current.wants(neuron)) {
      planned[neuron] = true;
      current.plan.neurons.push_back(neuron);
      current.plan.verdicts.push_back(verdict);
    } else if (verdict == TIERD_VERDICT_KEEP) {
      residency_.abandon(domain(site), neuron);
    }
  }

  std::vector<uint32_t> missing;
  for (uint32_t i = 0; i < current.active.size(); ++i) {
    const uint32_t neuron = current.active[i];
    if (residency_.valid(site, neuron)) {
      residency_.pin(site, neuron);
      current.resident.push_back(neuron);
      current.pinned.push_back(neuron);
      counters_.resident_bytes += sites_[site].bytes[neuron];
      ++counters_.hits;
      continue;
    }
    counters_.streamed_bytes += sites_[site].bytes[neuron];
    if (Fetch* fetch = coming[neuron]; fetch != nullptr) {
      if (!is_awaited(*fetch)) current.awaited.push_back(fetch);
      current.source[neuron] = fetch;
      ++counters_.staged;
    } else if (planned[neuron]) {
      ++counters_.misses;
    } else if (residency_.leased(site, neuron)) {
      // Admitted for a later site that shares these bytes (a tied head), and not asked for yet.
      claim_from_wishes(domain(site), neuron);
      current.plan.neurons.push_back(neuron);
      current.plan.verdicts.push_back(TIERD_VERDICT_KEEP);
      ++counters_.misses;
    } else {
      ++counters_.misses;
      missing.push_back(neuron);
    }
  }
  for (Fetch* fetch : ours) {
    if (is_awaited(*fetch)) {
      fetch->priority = Priority::demand;
      if (fetch->state == FetchState::reading) dispatcher_.raise(fetch->message, Priority::demand);
    } else if (fetch->site == site && fetch->step == current.pass.step && !fetch->into_arena()) {
      give_up(*fetch);  // the look-ahead was wrong about these
    }
  }
  return ask_cache(site, std::move(missing), Priority::demand, current.pass.bypass_caches, current.plan);
}

void Scheduler::fetch(Current& current) {
  while (!current.plan.done()) {
    Fetch* started = nullptr;
    if (!start_next(current.plan, current.site, current.pass.step, Priority::demand, started)) return;
    current.awaited.push_back(started);
    for (const uint32_t neuron : started->neurons) current.source[neuron] = started;
  }
}

// Posts one message for everything that can be computed now. The segments around the site ride with the first
// and the last message of the pass; the agent keeps the order.
void Scheduler::compute(Current& current) {
  const Site& site = sites_[current.site];
  if (!dispatcher_.can_post()) return;
  units_.clear();
  const auto add = [&](uint32_t neuron, uint64_t offset) {
    units_.push_back({neuron, static_cast<uint32_t>(offset / kSpanUnit)});
  };
  if (!current.started) {
    for (const uint32_t neuron : current.resident) add(neuron, slot_offset(current.site, neuron));
  }
  for (Fetch* fetch : current.awaited) {
    if (fetch->state != FetchState::landed) continue;
    if (!units_.empty() && units_.size() + fetch->neurons.size() > dispatcher_.max_units()) break;
    fetch->state = FetchState::computing;
    fetch->computed_by = {};  // named below
    for (uint32_t i = 0; i < fetch->neurons.size(); ++i) {
      // Not those that nobody wants, nor those that an alias has brought meanwhile.
      if (current.source[fetch->neurons[i]] == fetch) add(fetch->neurons[i], offset_in_pool(*fetch, i));
    }
  }
  const bool last =
      current.plan.done() && std::all_of(current.awaited.begin(), current.awaited.end(),
                                         [](const Fetch* f) { return f->state == FetchState::computing; });
  if (current.finished || (current.started && units_.empty() && !last)) return;

  Message message;
  message.op = units_.empty() ? Op::run : Op::compute;
  message.engine = EngineKind::compute;
  const bool partial = !site.given && current.active.size() < site.n;
  message.flags = static_cast<uint8_t>((current.started ? 0 : kRunBefore | (partial ? kPartial : 0)) |
                                       (last ? kRunAfter : 0));
  message.agent = options_.compute_agent;
  message.step = current.pass.step;
  message.site = current.site;
  message.rows = current.pass.rows;
  message.in = current.pass.row_info;
  TIERD_CHECK(site.n <= dispatcher_.max_units());
  const MessageId id = dispatcher_.post(message, units_, options_.compute_agent, options_.memory_pool, *this);
  for (Fetch* fetch : current.awaited) {
    if (fetch->state == FetchState::computing && fetch->computed_by == MessageId{}) fetch->computed_by = id;
  }
  ++current.running;
  current.started = true;
  current.finished = last;
}

Status Scheduler::observe(const Current& current) {
  const tierd_set_view used =
      set_view(domain(current.site), current.active, current.pass.rows, TIERD_SET_TRUE);
  if (!sites_[current.site].given) {
    const tierd_set_view predicted =
        set_view(current.site, current.active, current.pass.rows, TIERD_SET_PREDICTED);
    TIERD_TRY(strategies_.predictor.call_if(&tierd_predictor_1::observe, "observe", &predicted, &used));
  }
  if (current.pass.bypass_caches) return {};
  return strategies_.cache.call_if(&tierd_cache_1::touch, "touch", &used);
}

Status Scheduler::look_ahead(const Current& current) {
  auto& predictor = strategies_.predictor;
  if (!options_.prefetch || predictor.table.look_ahead == nullptr) return {};
  std::array<tierd_ahead, kMostAhead> items{};
  tierd_ahead_out out{kMostAhead, 0, items.data()};
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
    const tierd_ahead& item = items[i];
    const uint64_t place = uint64_t{current.site} + item.distance;
    if (item.site >= n_sites || item.distance == 0 || place % n_sites != item.site) {
      return predictor.fault("look_ahead", fmt::format("site {} does not lie {} sites after {}", item.site,
                                                       item.distance, current.site));
    }
    const uint64_t step = current.pass.step + place / n_sites;
    if (sites_[item.site].given || wished_[item.site] > step || step >= kNoStep) continue;
    wished_[item.site] = step + 1;
    auto listed = neurons_of(item, sites_[item.site].n);
    if (!listed.ok()) return predictor.fault("look_ahead", listed.error().detail);
    const SiteId home = domain(item.site);
    std::vector<uint32_t> missing = std::move(*listed);
    std::erase_if(missing, [&](uint32_t neuron) {
      return residency_.valid(home, neuron) || residency_.leased(home, neuron);
    });
    if (missing.empty()) continue;
    Wish wish;
    wish.site = item.site;
    wish.step = static_cast<uint32_t>(step);
    TIERD_TRY(
        ask_cache(item.site, std::move(missing), Priority::prefetch, current.pass.bypass_caches, wish.plan));
    if (!wish.plan.done()) wishes_.push_back(std::move(wish));
  }
  return {};
}

// Unpins what was used and gives back what was read; after an error also what is still to come.
void Scheduler::release(Current& current) {
  for (const uint32_t neuron : current.pinned) residency_.unpin(current.site, neuron);
  drop_plan(current.site, current.plan);
  const std::vector<Fetch*> awaited = std::move(current.awaited);
  current.awaited.clear();
  for (Fetch* fetch : awaited) give_up(*fetch);
}

Status Scheduler::end_step(uint32_t step) {
  if (observer() != nullptr) observer()->step_ends(step);
  std::vector<Fetch*> stale;
  for (Fetch& fetch : fetches_) {
    if (fetch.step <= step && !fetch.into_arena()) stale.push_back(&fetch);
  }
  for (Fetch* fetch : stale) give_up(*fetch);
  std::erase_if(wishes_, [&](Wish& wish) {
    if (wish.step > step) return false;
    drop_plan(wish.site, wish.plan);
    return true;
  });
  const Status told = strategies_.cache.call_if(&tierd_cache_1::end_step, "end_step");
  if (observer() != nullptr) observer()->settled(residency_.digest());
  TIERD_TRY(told);
  return take_fault();
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
  keep_fault(predictor.call_if(&tierd_predictor_1::end_sequence, "end_sequence", sequence));
}

bool Scheduler::quarantined() const {
  return strategies_.predictor.quarantined() || strategies_.quantizer.quarantined() ||
         strategies_.cache.quarantined() || strategies_.balancer.quarantined();
}

void Scheduler::on_done(const Message& message, const Done& done) {
  if (message.op == Op::read) {
    on_read_done(message, done);
  } else {
    on_compute_done(message, done);
  }
  pump_wishes();
  changed_.notify();
}

void Scheduler::on_compute_done(const Message& message, const Done& done) {
  counters_.compute_ns += done.done_ns - done.start_ns;
  TIERD_CHECK(current_ != nullptr);
  std::erase_if(current_->awaited, [&](Fetch* fetch) {
    const bool over = fetch->state == FetchState::computing && fetch->computed_by == message.id;
    if (over) retire(*fetch, true);
    return over;
  });
  --current_->running;
  if (done.status != DoneStatus::ok && !current_->failed()) {
    current_->error = {Code::internal, sites_[message.site].name,
                       fmt::format("compute failed with status {}", static_cast<int>(done.status))};
  }
}

}  // namespace tierd
