#include "core/kernel/pass/scheduler.h"

#include <limits>
#include <span>
#include <utility>

#include "core/base/checksum.h"
#include "core/kernel/pass/measurement.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/set_view.h"

namespace tierd {

Scheduler::Scheduler(Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies,
                     Placement& placement, std::deque<Residency>& residencies, Options options)
    : dispatcher_(dispatcher),
      sites_(sites),
      strategies_(strategies),
      options_(std::move(options)),
      source_memories_(options_.topology.memories.size()),
      prediction_(dispatcher, sites, strategies, options_.topology, options_.recording),
      plan_(sites, strategies, units()),
      computation_(dispatcher, sites, options_.topology, plan_, changed_),
      joint_runs_(dispatcher, sites, options_.topology, changed_),
      look_ahead_(sites, plan_, placement, options_.topology, supplies_),
      firing_(dispatcher, sites, strategies, options_.topology, plan_, options_.recording),
      idle_sources_(sites, strategies, options_.topology, plan_, supplies_),
      arenas_(sites, strategies, placement, options_.topology),
      loads_(sites.size(), options_.topology, options_.load_window),
      use_(sites.size()) {
  const std::vector<Memory>& memories = options_.topology.memories;
  TIERD_CHECK(residencies.size() == memories.size() && strategies.caches.size() == memories.size());
  for (size_t m = 0; m < memories.size(); ++m) {
    Supply::Options supply;
    supply.memory = static_cast<MemoryId>(m + 1);
    supply.topology = &options_.topology;
    supply.memories = source_memories_;
    supply.placement = &placement;
    supply.describe_extent = options_.describe_extent;
    supply.read_attempts = options_.read_attempts;
    source_memories_[m] =
        &supplies_.emplace_back(dispatcher, sites, strategies, residencies[m], supply, changed_);
    arenas_.add(supplies_.back().context(), supplies_.back().admission());
  }
}

Scheduler::~Scheduler() = default;

Task<Status> Scheduler::pass(SiteId site, Pass request) {
  Current current;
  current.site = site;
  current.pass = request;
  computation_.begin(site, request, looks_at_input(site + 1, request.step));
  if (observer() != nullptr) observer()->pass_begins(site, request);

  Status status = take_fault();
  if (status.ok()) status = joint_runs_.take_status();
  if (status.ok() && prediction_.waits_for_input(site)) {
    (void)co_await post_joint_run();
    while (!dispatcher_.can_post()) co_await changed_;
    computation_.run_before();
    while (computation_.running()) co_await changed_;
    status = computation_.status();
  }
  if (status.ok()) status = predict(current);
  if (status.ok()) status = plan_.make(site, current.computed(), request.rows, request.bypass_caches);
  if (status.ok() && !sites_[site].given())
    use_[site].used_bytes += plan_.used_bytes(site, current.computed(), current.active, request.rows);
  current.joins = status.ok() && joins(current);
  if (status.ok() && !(current.joins && joint_runs_.goes_on_with(request))) (void)co_await post_joint_run();
  if (status.ok()) status = admit(current);
  if (status.ok() && !request.bypass_caches) status = idle_sources_.use(site, dispatcher_.now_ns());

  bool looked_ahead = false;
  while (status.ok() && !current.joins) {
    fetch();              // missing neurons, as far as there is room
    computation_.post();  // resident neurons at once, the others as they arrive
    // Overlaps with the compute, but only after all requests of this pass, once the active set is known.
    if (!looked_ahead && !current.measured && (asked_all() || computation_.over())) {
      looked_ahead = true;
      status = observe(current);
      if (!status.ok()) break;
    }
    if (computation_.over()) break;
    pump();
    co_await changed_;
    status = computation_.status();
    if (status.ok() && stopping()) status = Error{Code::cancelled, sites_[site].name, "interrupted"};
  }
  while (computation_.running()) co_await changed_;
  if (status.ok()) status = computation_.status();
  status = end_computation(current, looked_ahead, std::move(status));
  if (status.ok()) {
    pump();
    co_return status;
  }

  joint_runs_.forget();
  while (joint_runs_.running()) co_await changed_;
  // A failure of an earlier pass is the cause.
  if (const Status earlier = joint_runs_.take_status(); !earlier.ok()) status = earlier;
  for (const Supply& supply : supplies_) {
    while (supply.transferring(site, request.step)) co_await changed_;
  }
  co_return status;
}

Status Scheduler::end_computation(const Current& current, bool looked_ahead, Status status) {
  compute_ns_ += computation_.take_busy_ns();
  idle_sources_.end(dispatcher_.now_ns(), computation_.all_units());
  if (status.ok() && !current.pass.bypass_caches && units() > 1)
    loads_.add(current.site, computation_.all_units());

  end_gatherings();
  TIERD_TRY(status);
  if (!looked_ahead) TIERD_TRY(observe(current));
  // All neurons were computed for all rows, so the neurons that did not fire are known, too.
  const bool knows_all = current.measured || (current.active.is_all() && !current.masked);
  if (firing_.is_told(current.site)) TIERD_TRY(firing_.tell(current.site, current.pass, knows_all));
  TIERD_TRY(touch(current));
  return take_fault();
}

Status Scheduler::predict(Current& current) {
  const Site& site = sites_[current.site];
  TIERD_ASSIGN(current.active, prediction_.active(current.site, current.pass));
  if (site.given()) return {};
  if (observer() != nullptr) observer()->activated(current.site, current.active);
  current.measured = measures(current.site, current.pass.step);
  if (current.measured && !current.active.is_all()) current.whole = whole_of(current.active, site.n);
  // Agents that compute a chosen set read the rows' choices themselves.
  current.masked = !site.chosen() && (current.active.row_masks() != nullptr || current.whole.size() != 0);
  if (current.masked) write_row_masks(current.active, site.n, current.pass.rows, row_masks_);
  // Sites whose results are added start from zero. Sites whose results are placed start from zero only if
  // some rows of the result are not computed.
  Computation::Asked asked{.incomplete = site.added || current.computed().size() < site.n,
                           .measure = current.measured,
                           .tell = firing_.is_told(current.site) && !current.measured};
  if (current.masked) asked.masks = row_masks_;
  computation_.ask(asked);
  SiteUse& use = use_[current.site];
  use.rows += current.pass.rows;
  use.used += count_uses(current.active, current.pass.rows);
  return {};
}

// Returns all neurons of the site; the inactive ones rank last.
ActiveSet Scheduler::whole_of(const ActiveSet& active, uint32_t n) {
  if (active.scores() == nullptr) return ActiveSet::all(n);
  std::vector<float> scores(n, std::numeric_limits<float>::lowest());
  for (uint32_t i = 0; i < active.size(); ++i) scores[active[i]] = active.scores()[i];
  return ActiveSet::all(n, std::move(scores));
}

bool Scheduler::measures(SiteId site, uint32_t step) const {
  return sites_[site].contribution.there() && options_.measure_every != 0 &&
         step % options_.measure_every == 0;
}

// Returns whether the kernel itself reads the input of the site.
bool Scheduler::looks_at_input(SiteId site, uint32_t step) const {
  return site < sites_.size() && (prediction_.looks_at_input(site) || measures(site, step));
}

// Returns whether the pass can join a run: all its neurons are in the memory that computes them, and the
// kernel does not read its activations.
bool Scheduler::joins(const Current& current) const {
  const SiteId site = current.site;
  if (!joint_runs_.may_take(site, current.pass) || firing_.is_told(site) || current.measured ||
      current.masked || !current.active.is_all() || prediction_.looks_at_input(site))
    return false;
  const bool gives = !sites_[site + 1].flow.before && looks_at_input(site + 1, current.pass.step);
  // A cache with `expire` names evictions after each pass, but pinned neurons cannot be evicted.
  const bool drops = strategies_.caches[unit_memory(0) - 1u].table.expire != nullptr;
  const Supply& supply = supplies_[unit_memory(0) - 1u];
  const EditionId held = supply.held_as(sites_[site].editions.front());
  return !gives && !drops && supply.residency().valid_count(held) == sites_[site].n;
}

// Posts the passes left to a joint run, before any other message.
Task<Status> Scheduler::post_joint_run() {
  if (joint_runs_.empty()) co_return Status{};
  while (!dispatcher_.can_post()) co_await changed_;
  joint_runs_.post();
  // The dispatcher sends the run before the kernel continues with the next passes.
  dispatcher_.wake(changed_);
  co_await changed_;
  co_return Status{};
}

Task<Status> Scheduler::joint_runs_are_over() {
  (void)co_await post_joint_run();
  while (joint_runs_.running()) co_await changed_;
  compute_ns_ += joint_runs_.take_busy_ns();
  co_return joint_runs_.take_status();
}

Status Scheduler::admit(Current& current) {
  const SchedulerCounters before = counters();
  // Starts with the memories that units compute from: a memory over another one releases its neurons first.
  for (size_t m = supplies_.size(); m-- > 0;) supplies_[m].begin_pass(current.site, current.pass.step);
  for (UnitId u = 0; u < units(); ++u) {
    for (const PassPlan::Share& share : plan_.shares(u)) {
      GatherRequest request;
      request.purpose = {current.site, current.pass.step, unit_memory(u)};
      request.edition = supply_of(u).held_as(share.edition);
      request.agent = options_.topology.units[u].agent;
      if (current.joins) {
        request.wanted = ActiveSet::all(share.neurons->size());  // the gathering stays when the pass is over
      } else {
        request.wanted = share.neurons;
      }
      request.bypass = current.pass.bypass_caches;
      if (current.whole.size() != 0) request.used = &current.active;
      TIERD_ASSIGN(Gathering* const gathering, supply_of(u).gather(std::move(request)));
      if (current.joins) {
        joint_runs_.add(current.site, current.pass, supply_of(u), *gathering);
      } else {
        computation_.unit(u).add(*gathering);
      }
    }
  }
  if (current.pass.bypass_caches) return {};
  const SchedulerCounters after = counters();
  SiteUse& use = use_[current.site];
  use.hits += after.hits - before.hits;
  use.staged += after.staged - before.staged;
  use.misses += after.misses - before.misses;
  look_ahead_.count(current.site, current.pass.step, current.active, use);
  return {};
}

// Returns whether transfers were started for all missing neurons of the pass.
bool Scheduler::asked_all() {
  for (UnitId u = 0; u < units(); ++u) {
    if (!std::ranges::all_of(computation_.unit(u).gatherings(), &Gathering::asked_all)) return false;
  }
  return true;
}

void Scheduler::fetch() {
  for (Supply& supply : supplies_) supply.fetch();
}

void Scheduler::end_gatherings() {
  for (UnitId u = 0; u < units(); ++u) {
    for (Gathering* const gathering : computation_.unit(u).gatherings()) supply_of(u).close(*gathering);
  }
  for (Supply& supply : supplies_) supply.end_pass();
}

// Reports the active set to the predictor, and asks it for wishes for later sites.
Status Scheduler::observe(const Current& current) {
  if (!sites_[current.site].given()) {
    const ActiveSet measured = current.measured ? measure(current) : ActiveSet();
    Prediction::Outcome outcome{current.active};
    if (current.measured) outcome.measured = &measured;
    if (current.whole.size() == 0) outcome.level_of = plan_.level_of(), outcome.unit_of = plan_.unit_of();
    TIERD_TRY(prediction_.tell(current.site, current.pass, outcome));
  }
  return look_ahead(current);
}

Status Scheduler::touch(const Current& current) {
  if (current.pass.bypass_caches) return {};
  for (UnitId u = 0; u < units(); ++u) {
    for (const PassPlan::Share& share : plan_.shares(u)) TIERD_TRY(touch(current, u, share));
  }
  return {};
}

// Reports the used neurons to the unit's cache, without the ones that were only measured.
Status Scheduler::touch(const Current& current, UnitId unit, const PassPlan::Share& share) {
  const ActiveSet* used = share.neurons;
  ActiveSet not_measured;
  if (used == &current.whole) {
    used = &current.active;
  } else if (current.whole.size() != 0) {
    std::vector<uint32_t> neurons;
    for (uint32_t i = 0; i < used->size(); ++i) {
      if (current.active.contains((*used)[i])) neurons.push_back((*used)[i]);
    }
    not_measured = ActiveSet::of(std::move(neurons));
    used = &not_measured;
  }
  const EditionId held = supply_of(unit).held_as(share.edition);
  const tierd_set_view set =
      edition_set(held, sites_.editions[held], *used, current.pass.rows, TIERD_SET_TRUE);
  TIERD_TRY(strategies_.caches[unit_memory(unit) - 1u].call_if(&tierd_cache_1::touch, "touch", &set));
  return supply_of(unit).admission().expire(held);
}

// Compares the contribution of each neuron to each row with the prediction.
ActiveSet Scheduler::measure(const Current& current) {
  if (options_.recording != nullptr) return options_.recording->measured(current.site);
  const uint32_t rows = current.pass.rows;
  contribution_.resize(uint64_t{rows} * sites_[current.site].n);
  for (UnitId u = 0; u < units(); ++u) {
    for (const PassPlan::Share& share : plan_.shares(u))
      copy_contributions(dispatcher_, sites_[current.site], options_.topology.units[u].agent, *share.neurons,
                         rows, contribution_);
  }
  SiteUse& use = use_[current.site];
  use.measured_rows += rows;
  use.predicted += count_uses(current.active, rows);
  const uint64_t* const predicted = current.masked ? row_masks_.data() : nullptr;
  ActiveSet active = compare_with_prediction(contribution_, rows, predicted, use);
  if (observer() != nullptr)
    observer()->measured(
        current.site, {active, rows, prediction_.input_of(current.site, current.pass), contribution_.data()});
  return active;
}

Status Scheduler::look_ahead(const Current& current) {
  if (!options_.prefetch) return {};
  const Pass& pass = current.pass;
  TIERD_ASSIGN(const WishList* const wishes, prediction_.ahead(current.site, pass));
  TIERD_TRY(look_ahead_.wish(current.site, pass.step, *wishes, kStore, pass.bypass_caches));
  for (size_t m = 0; m < supplies_.size() && !pass.bypass_caches; ++m) {
    auto& cache = strategies_.caches[m];
    if (cache.table.ahead == nullptr) continue;
    TIERD_TRY(cache.call_for_wishes(&tierd_cache_1::ahead, "ahead", current.site));
    TIERD_TRY(check_wishes(cache, "ahead", current.site, sites_, options_.topology));
    TIERD_TRY(look_ahead_.wish(current.site, pass.step, *cache.wishes, static_cast<MemoryId>(m + 1), false));
  }
  return {};
}

Task<Status> Scheduler::end_step(uint32_t step) {
  if (observer() != nullptr) observer()->step_ends(step);
  Status told = co_await joint_runs_are_over();
  for (size_t m = supplies_.size(); m-- > 0;) supplies_[m].end_step(step);
  for (auto& cache : strategies_.caches) {
    const Status answer = cache.call_if(&tierd_cache_1::end_step, "end_step");
    if (told.ok()) told = answer;
  }
  if (told.ok()) told = co_await split_anew();
  if (observer() != nullptr) {
    observer()->settled([this] {
      uint64_t digest = 0;
      for (const Supply& supply : supplies_) digest = digest * WordHash::kPrime ^ supply.residency().digest();
      return digest;
    });
  }
  co_return told.ok() ? take_fault() : told;
}

Task<Status> Scheduler::split_anew() {
  auto units = arenas_.unevenly_split();
  if (!units.ok()) co_return units.error();
  if (units->empty()) co_return Status{};
  (void)co_await look_ahead_is_over();
  co_return co_await arenas_.split_anew(std::move(*units));
}

Status Scheduler::take_fault() {
  TIERD_TRY(std::exchange(fault_, Status()));
  for (Supply& supply : supplies_) TIERD_TRY(supply.admission().take_fault());
  return {};
}

Task<Status> Scheduler::fill(std::function<void(uint64_t)> progress) {
  if (observer() != nullptr) observer()->fill_begins();
  Status told = co_await arenas_.tell();
  if (!told.ok()) co_return told;
  for (size_t m = 0; m < supplies_.size(); ++m) {
    auto asked = wanted_at_start(strategies_.caches[m], sites_.editions, options_.topology.memories[m]);
    if (!asked.ok()) co_return asked.error();
    Status filled = co_await supplies_[m].fill(std::move(*asked), progress, [this] { return stopping(); });
    if (!filled.ok()) co_return filled;
  }
  co_return Status{};
}

Task<Status> Scheduler::resize(ArenaParts parts) {
  if (observer() != nullptr) observer()->resize_begins(parts);
  co_return co_await arenas_.resize(std::move(parts));
}

Task<Status> Scheduler::look_ahead_is_over() {
  look_ahead_.forget();
  for (size_t m = supplies_.size(); m-- > 0;) supplies_[m].give_up_all();
  for (const Supply& supply : supplies_) {
    while (!supply.idle()) co_await changed_;
  }
  co_return Status{};
}

Task<Status> Scheduler::drain() {
  if (observer() != nullptr) observer()->drain_begins();
  (void)co_await look_ahead_is_over();
  // From here on the quarantine of the plugins reports the faults.
  fault_ = {};
  for (Supply& supply : supplies_) (void)supply.admission().take_fault();
  co_return Status{};
}

bool Scheduler::stopping() {
  if (!dispatcher_.waiter().stopping()) return false;
  if (observer() != nullptr) observer()->interrupted();
  return true;
}

Status Scheduler::begin_sequence(uint64_t sequence, std::string_view label) {
  if (observer() != nullptr) observer()->sequence_begins(sequence, label);
  Status told = strategies_.predictor.call_if(&tierd_predictor_1::begin_sequence, "begin_sequence", sequence);
  for (auto& cache : strategies_.caches) {
    const Status answer = cache.call_if(&tierd_cache_1::begin_sequence, "begin_sequence", sequence);
    if (told.ok()) told = answer;
  }
  if (!told.ok()) tell_end(sequence);
  return told;
}

void Scheduler::end_sequence(uint64_t sequence) {
  if (observer() != nullptr) observer()->sequence_ends(sequence);
  tell_end(sequence);
}

void Scheduler::tell_end(uint64_t sequence) {
  const auto tell = [&](auto& strategy, auto function) {
    if (strategy.quarantined()) return;  // its fault was reported
    const Status answer = strategy.call_if(function, "end_sequence", sequence);
    if (fault_.ok()) fault_ = answer;
  };
  tell(strategies_.predictor, &tierd_predictor_1::end_sequence);
  for (auto& cache : strategies_.caches) tell(cache, &tierd_cache_1::end_sequence);
}

void Scheduler::rows_kept(uint32_t rows, uint32_t kept) {
  TIERD_CHECK(kept <= rows);
  if (observer() != nullptr) observer()->rows_kept(rows, kept);
  for (auto& cache : strategies_.caches) {
    if (cache.quarantined()) continue;  // its fault was reported
    const Status answer = cache.call_if(&tierd_cache_1::rows_kept, "rows_kept", rows, kept);
    if (fault_.ok()) fault_ = answer;
  }
}

bool Scheduler::quarantined() const {
  return strategies_.predictor.quarantined() || strategies_.quantizer.quarantined() ||
         strategies_.balancer.quarantined() || strategies_.heat.quarantined() ||
         std::any_of(strategies_.caches.begin(), strategies_.caches.end(),
                     [](const auto& cache) { return cache.quarantined(); });
}

void Scheduler::pump() {
  for (Supply& supply : supplies_) supply.pump();
}

uint64_t Scheduler::fetching_ns() const {
  uint64_t ns = 0;
  const Topology& topology = options_.topology;
  for (uint16_t agent = 1; agent <= dispatcher_.agents(); ++agent) {
    const bool fetches =
        std::ranges::any_of(topology.links, [agent](const Link& l) { return l.agent == agent; });
    const bool computes =
        std::ranges::any_of(topology.units, [agent](const ComputeUnit& u) { return u.agent == agent; });
    if (fetches && !computes) ns += dispatcher_.driven_ns(agent);
  }
  return ns;
}

SchedulerCounters Scheduler::counters() const {
  SchedulerCounters all;
  all.compute_ns = compute_ns_;
  for (const Supply& supply : supplies_) add_figures<MemoryCounters>(all, supply.counters());
  const std::vector<Link>& links = options_.topology.links;
  for (size_t l = 0; l < links.size(); ++l) {
    if (links[l].from == kStore) all.read_bytes += link_counters(l).bytes;
  }
  return all;
}

size_t Scheduler::link_of_supply(size_t link) const {
  const std::vector<Link>& links = options_.topology.links;
  return static_cast<size_t>(std::ranges::count(std::span(links).first(link), links[link].to, &Link::to));
}

const LinkCounters& Scheduler::link_counters(size_t link) const {
  return supplies_[options_.topology.links[link].to - 1u].links()[link_of_supply(link)];
}

Scheduler::Counted Scheduler::counted() const {
  Counted all{.memories = {}, .links = {}, .use = use_, .compute_ns = compute_ns_};
  for (const Supply& supply : supplies_) all.memories.push_back(supply.counters());
  for (size_t l = 0; l < options_.topology.links.size(); ++l) all.links.push_back(link_counters(l));
  return all;
}

void Scheduler::count_on(const Counted& from) {
  TIERD_CHECK(from.memories.size() == supplies_.size() && from.use.size() == use_.size());
  TIERD_CHECK(from.links.size() == options_.topology.links.size());
  for (size_t m = 0; m < supplies_.size(); ++m) supplies_[m].count_on(from.memories[m]);
  for (size_t l = 0; l < from.links.size(); ++l)
    supplies_[options_.topology.links[l].to - 1u].count_on(link_of_supply(l), from.links[l]);
  use_ = from.use;
  compute_ns_ = from.compute_ns;
}

}  // namespace tierd
