#include "core/kernel/intake.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/align.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/set_view.h"

namespace tierd {
namespace {

// Blocks that look-ahead leaves free, so that a demand never waits for the compute of a later site.
constexpr uint32_t kDemandBlocks = 1;

}  // namespace

Intake::Intake(Dispatcher& dispatcher, const std::vector<Site>& sites, Strategies& strategies,
               Residency& residency, Options options, SchedulerCounters& counters,
               Notice& changed)
    : dispatcher_(dispatcher),
      sites_(sites),
      strategies_(strategies),
      residency_(residency),
      options_(std::move(options)),
      counters_(counters),
      changed_(changed),
      staging_(options_.memory.staging_blocks, options_.memory.block_bytes) {}

Intake::~Intake() = default;

// Tells apart what is here, what is coming, and what must be asked for.
Status Intake::begin(SiteId site, uint32_t step, const ActiveSet& wanted, bool bypass) {
  in_pass_ = true;
  site_ = site;
  step_ = step;
  error_ = {Code::ok, {}, {}};
  std::vector<Fetch*> coming(sites_[site].n, nullptr);
  source_.assign(sites_[site].n, nullptr);
  std::vector<Fetch*> ours;
  for (Fetch& fetch : fetches_) {
    const bool for_this_pass = fetch.site == site && fetch.step == step;
    if (domain(fetch.site) != domain(site) || fetch.unwanted) continue;
    if (!fetch.into_arena() && !for_this_pass) continue;
    for (const uint32_t neuron : fetch.neurons) coming[neuron] = &fetch;
    ours.push_back(&fetch);
  }
  // A wish that was not worked off in time becomes part of the demand, as far as it was right.
  std::vector<bool> planned(sites_[site].n, false);
  for (Plan wish = take_wish(site, step); !wish.done(); ++wish.next) {
    const uint32_t neuron = wish.neurons[wish.next];
    const uint8_t verdict = wish.verdicts[wish.next];
    // What is to pass through staging may have come by way of an alias since.
    const bool needed = verdict == TIERD_VERDICT_KEEP ||
                        (coming[neuron] == nullptr && residency_.slot(site, neuron) == kNoSlot);
    if (needed && wanted.contains(neuron)) {
      planned[neuron] = true;
      plan_.neurons.push_back(neuron);
      plan_.verdicts.push_back(verdict);
    } else if (verdict == TIERD_VERDICT_KEEP) {
      residency_.abandon(domain(site), neuron);
    }
  }

  std::vector<uint32_t> missing;
  for (uint32_t i = 0; i < wanted.size(); ++i) {
    const uint32_t neuron = wanted[i];
    if (residency_.valid(site, neuron)) {
      residency_.pin(site, neuron);
      resident_.push_back(neuron);
      pinned_.push_back(neuron);
      counters_.resident_bytes += sites_[site].bytes[neuron];
      ++counters_.hits;
      continue;
    }
    counters_.streamed_bytes += sites_[site].bytes[neuron];
    if (Fetch* fetch = coming[neuron]; fetch != nullptr) {
      if (!is_awaited(*fetch)) awaited_.push_back(fetch);
      source_[neuron] = fetch;
      ++counters_.staged;
    } else if (planned[neuron]) {
      ++counters_.misses;
    } else if (residency_.leased(site, neuron)) {
      // Admitted for a later site that shares these bytes (a tied head), and not asked for yet.
      claim_from_wishes(domain(site), neuron);
      plan_.neurons.push_back(neuron);
      plan_.verdicts.push_back(TIERD_VERDICT_KEEP);
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
    } else if (fetch->site == site && fetch->step == step && !fetch->into_arena()) {
      give_up(*fetch);  // the look-ahead was wrong about these
    }
  }
  return ask_cache(site, std::move(missing), Priority::demand, bypass, plan_);
}

void Intake::fetch() {
  while (!plan_.done()) {
    Fetch* started = nullptr;
    if (!start_next(plan_, site_, step_, Priority::demand, started)) return;
    awaited_.push_back(started);
    for (const uint32_t neuron : started->neurons) source_[neuron] = started;
  }
}

void Intake::hand_out(std::vector<Unit>& units) {
  const auto add = [&](uint32_t neuron, uint64_t offset) {
    units.push_back({neuron, static_cast<uint32_t>(offset / kSpanUnit)});
  };
  for (const uint32_t neuron : resident_) add(neuron, slot_offset(site_, neuron));
  resident_.clear();
  for (Fetch* fetch : awaited_) {
    if (fetch->state != FetchState::landed) continue;
    if (!units.empty() && units.size() + fetch->neurons.size() > dispatcher_.max_units()) break;
    fetch->state = FetchState::computing;
    fetch->computed_by = {};
    for (uint32_t i = 0; i < fetch->neurons.size(); ++i) {
      // Not those that nobody wants, nor those that an alias has brought meanwhile.
      if (source_[fetch->neurons[i]] == fetch) add(fetch->neurons[i], offset_in_pool(*fetch, i));
    }
  }
}

void Intake::computed_by(MessageId message) {
  for (Fetch* fetch : awaited_) {
    if (fetch->state == FetchState::computing && fetch->computed_by == MessageId{})
      fetch->computed_by = message;
  }
}

void Intake::computed(MessageId message) {
  std::erase_if(awaited_, [&](Fetch* fetch) {
    const bool over = fetch->state == FetchState::computing && fetch->computed_by == message;
    if (over) retire(*fetch, true);
    return over;
  });
}

bool Intake::handed_out() const {
  return resident_.empty() && plan_.done() &&
         std::all_of(awaited_.begin(), awaited_.end(),
                     [](const Fetch* f) { return f->state == FetchState::computing; });
}

void Intake::end() {
  in_pass_ = false;
  for (const uint32_t neuron : pinned_) residency_.unpin(site_, neuron);
  pinned_.clear();
  resident_.clear();
  drop_plan(site_, plan_);
  plan_ = {};
  const std::vector<Fetch*> awaited = std::exchange(awaited_, {});
  for (Fetch* fetch : awaited) give_up(*fetch);
}

Status Intake::wish(SiteId site, uint32_t step, std::vector<uint32_t> neurons, bool bypass) {
  const SiteId home = domain(site);
  std::erase_if(neurons, [&](uint32_t neuron) {
    return residency_.valid(home, neuron) || residency_.leased(home, neuron);
  });
  if (neurons.empty()) return {};
  Wish wish;
  wish.site = site;
  wish.step = step;
  TIERD_TRY(ask_cache(site, std::move(neurons), Priority::prefetch, bypass, wish.plan));
  if (!wish.plan.done()) wishes_.push_back(std::move(wish));
  return {};
}

void Intake::end_step(uint32_t step) {
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
}

Status Intake::ask_cache(SiteId site, std::vector<uint32_t> missing, Priority priority, bool bypass,
                         Plan& plan) {
  if (missing.empty()) return {};
  const SiteId home = domain(site);
  const size_t first = plan.neurons.size();
  plan.neurons.insert(plan.neurons.end(), missing.begin(), missing.end());
  plan.verdicts.resize(plan.neurons.size(), TIERD_VERDICT_BYPASS);
  if (bypass) return {};

  const auto fault = [&](const std::string& what) {
    drop_plan(site, plan);
    return cache().fault("admit", what);
  };
  const ActiveSet set = ActiveSet::of(std::move(missing));
  tierd_set_view view = set_view(home, set, 1, TIERD_SET_PREDICTED);
  victims_.resize(set.size());
  tierd_victims_out out{set.size(), 0, victims_.data()};
  uint8_t* verdicts = plan.verdicts.data() + first;
  const Status asked = cache().call(&tierd_cache_1::admit, "admit", &view, static_cast<int>(priority),
                                    residency_.free_slots(home), verdicts, &out);
  // Until the slots are leased the plan must not claim them.
  answers_.assign(verdicts, verdicts + set.size());
  std::fill_n(verdicts, set.size(), uint8_t{TIERD_VERDICT_BYPASS});
  if (!asked.ok()) {
    drop_plan(site, plan);
    return asked;
  }
  if (out.n > set.size()) return fault(fmt::format("{} victims for {} neurons", out.n, set.size()));

  std::vector<uint32_t> dropped;
  for (uint32_t i = 0; i < out.n; ++i) {
    const tierd_neuron& victim = victims_[i];
    if (victim.site != home || victim.neuron >= sites_[home].n || !residency_.valid(home, victim.neuron) ||
        residency_.pinned(home, victim.neuron)) {
      return fault(fmt::format("victim {} of site {} cannot be evicted", victim.neuron, victim.site));
    }
    residency_.evict(home, victim.neuron);
    dropped.push_back(victim.neuron);
    ++counters_.evictions;
  }
  if (!dropped.empty()) {
    if (observer() != nullptr) observer()->evicted(options_.unit, home, dropped);
    keep_fault(cache().call_if(&tierd_cache_1::dropped, "dropped", home, dropped.data(),
                               static_cast<uint32_t>(dropped.size()), TIERD_DROPPED_EVICTED));
  }
  size_t kept = first;
  for (uint32_t i = 0; i < set.size(); ++i) {
    const uint8_t verdict = answers_[i];
    if (verdict > TIERD_VERDICT_REFUSE) return fault(fmt::format("verdict {}", verdict));
    if (verdict == TIERD_VERDICT_REFUSE) {
      if (priority == Priority::demand) return fault("refused a neuron that is needed now");
      continue;
    }
    if (verdict == TIERD_VERDICT_KEEP) {
      if (residency_.free_slots(home) == 0) return fault("keeps more neurons than it has slots and victims");
      residency_.lease(home, set[i]);
    }
    plan.neurons[kept] = set[i];
    plan.verdicts[kept] = verdict;
    ++kept;
  }
  plan.neurons.resize(kept);
  plan.verdicts.resize(kept);
  return {};
}

bool Intake::start_next(Plan& plan, SiteId site, uint32_t step, Priority priority, Fetch*& started) {
  if (!dispatcher_.can_post()) return false;
  const bool keep = plan.verdicts[plan.next] == TIERD_VERDICT_KEEP;
  if (!keep) {
    const uint32_t needed = priority == Priority::demand ? 1 : 1 + kDemandBlocks;
    if (staging_.free_blocks() < needed && !(priority == Priority::demand && free_a_block())) return false;
  }
  if (unused_.empty()) unused_.emplace_back();
  fetches_.splice(fetches_.end(), unused_, unused_.begin());
  Fetch& fetch = fetches_.back();
  std::vector<uint32_t> neurons = std::move(fetch.neurons);  // for their memory
  neurons.clear();
  fetch = {};
  fetch.site = site;
  fetch.step = step;
  fetch.priority = priority;
  fetch.place = std::prev(fetches_.end());
  const uint64_t slot_bytes = sites_[site].slot_bytes;
  const size_t most =
      std::min<size_t>(std::max<uint64_t>(1, staging_.block_bytes() / slot_bytes), dispatcher_.max_units());
  while (!plan.done() && neurons.size() < most && (plan.verdicts[plan.next] == TIERD_VERDICT_KEEP) == keep) {
    neurons.push_back(plan.neurons[plan.next++]);
  }
  fetch.neurons = std::move(neurons);
  if (!keep) fetch.block = staging_.lease();
  started = &fetch;
  post_read(fetch);
  return true;
}

void Intake::post_read(Fetch& fetch) {
  units_.clear();
  for (uint32_t i = 0; i < fetch.neurons.size(); ++i) {
    units_.push_back({sites_[fetch.site].first_extent + fetch.neurons[i],
                      static_cast<uint32_t>(offset_in_pool(fetch, i) / kSpanUnit)});
  }
  Message message;
  message.op = Op::read;
  message.engine = EngineKind::read;
  message.priority = fetch.priority;
  message.agent = options_.flash_agent;
  message.step = in_pass_ ? step_ : 0;
  message.site = fetch.site;
  if (fetch.priority == Priority::prefetch) message.expires_step = fetch.step;
  ++fetch.attempts;
  fetch.state = FetchState::reading;
  fetch.message = dispatcher_.post(message, units_, options_.memory.agent, options_.memory.pool, *this);
  fetch_of_message_.resize(std::max<size_t>(fetch_of_message_.size(), fetch.message.slot + 1u));
  fetch_of_message_[fetch.message.slot] = &fetch;
}

void Intake::pump() {
  // What a demand waits for is not given to the look-ahead.
  if (in_pass_ && !plan_.done()) return;
  while (!wishes_.empty()) {
    Wish& wish = wishes_.front();
    while (!wish.plan.done()) {
      Fetch* started = nullptr;
      if (!start_next(wish.plan, wish.site, wish.step, Priority::prefetch, started)) return;
    }
    wishes_.pop_front();
  }
}

Intake::Plan Intake::take_wish(SiteId site, uint32_t step) {
  for (auto wish = wishes_.begin(); wish != wishes_.end(); ++wish) {
    if (wish->site != site || wish->step != step) continue;
    Plan plan = std::move(wish->plan);
    wishes_.erase(wish);
    return plan;
  }
  return {};
}

void Intake::claim_from_wishes(SiteId home, uint32_t neuron) {
  for (Wish& wish : wishes_) {
    if (domain(wish.site) != home) continue;
    for (size_t i = wish.plan.next; i < wish.plan.neurons.size(); ++i) {
      if (wish.plan.neurons[i] != neuron || wish.plan.verdicts[i] != TIERD_VERDICT_KEEP) continue;
      wish.plan.neurons.erase(wish.plan.neurons.begin() + static_cast<std::ptrdiff_t>(i));
      wish.plan.verdicts.erase(wish.plan.verdicts.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
  TIERD_CHECK_MSG(false, "a leased neuron belongs to no fetch and no wish");
}

void Intake::drop_plan(SiteId site, Plan& plan) {
  for (; !plan.done(); ++plan.next) {
    if (plan.verdicts[plan.next] == TIERD_VERDICT_KEEP)
      residency_.abandon(domain(site), plan.neurons[plan.next]);
  }
}

// Room for a demand: the look-ahead that is farthest from being used gives way.
bool Intake::free_a_block() {
  Fetch* farthest = nullptr;
  for (Fetch& fetch : fetches_) {
    if (fetch.into_arena() || fetch.unwanted || fetch.state == FetchState::computing || is_awaited(fetch))
      continue;
    if (farthest == nullptr ||
        std::pair(fetch.step, fetch.site) >= std::pair(farthest->step, farthest->site)) {
      farthest = &fetch;
    }
  }
  if (farthest == nullptr) return false;
  give_up(*farthest);
  return staging_.free_blocks() > 0;
}

// Nobody wants this fetch any more. Bytes in flight must land before their memory can be used again.
void Intake::give_up(Fetch& fetch) {
  if (fetch.state == FetchState::computing) return;
  if (fetch.state == FetchState::reading) {
    // What goes into the arena is kept when it lands: the bytes are paid for.
    if (fetch.into_arena()) return;
    if (!fetch.unwanted) dispatcher_.cancel(fetch.message);
    fetch.unwanted = true;
    return;
  }
  retire(fetch, false);
}

void Intake::retire(Fetch& fetch, bool used) {
  if (!used && !fetch.into_arena()) counters_.wasted += fetch.neurons.size();
  if (!fetch.into_arena()) staging_.give_back(fetch.block);
  unused_.splice(unused_.begin(), fetches_, fetch.place);
}

bool Intake::is_awaited(const Fetch& fetch) const {
  return std::find(awaited_.begin(), awaited_.end(), &fetch) != awaited_.end();
}

// A fault in an answer to mere news is kept until somebody can be told.
void Intake::keep_fault(const Status& answer) {
  if (!answer.ok() && fault_.code == Code::ok) fault_ = answer.error();
}

Status Intake::take_fault() {
  if (fault_.code == Code::ok) return {};
  return std::exchange(fault_, Error{Code::ok, {}, {}});
}

void Intake::forget_fault() {
  fault_ = {Code::ok, {}, {}};
}

// Whether memory of this site and step still belongs to a read.
bool Intake::reading(SiteId site, uint32_t step) const {
  return std::any_of(fetches_.begin(), fetches_.end(), [&](const Fetch& fetch) {
    return fetch.site == site && fetch.step == step && fetch.state == FetchState::reading;
  });
}

void Intake::on_done(const Message& message, const Done& done) {
  take_read(message, done);
  dispatcher_.wake(changed_);
}

void Intake::take_read(const Message& message, const Done& done) {
  Fetch& fetch = *fetch_of_message_[message.id.slot];
  TIERD_CHECK(fetch.message == message.id);
  counters_.read_bytes += done.bytes;
  const bool awaited = is_awaited(fetch);
  const SiteId home = domain(fetch.site);

  if (done.status == DoneStatus::ok) {
    fetch.state = FetchState::landed;
    if (fetch.into_arena()) {
      for (const uint32_t neuron : fetch.neurons) residency_.landed(home, neuron);
      keep_fault(cache().call_if(&tierd_cache_1::landed, "landed", home, fetch.neurons.data(),
                                 static_cast<uint32_t>(fetch.neurons.size())));
      if (fill_progress_) fill_progress_(done.bytes);
      if (awaited) {
        // In use until the pass ends: not to be evicted before it is computed.
        for (const uint32_t neuron : fetch.neurons) {
          residency_.pin(home, neuron);
          pinned_.push_back(neuron);
        }
      } else {
        retire(fetch, true);
      }
    } else if (fetch.unwanted) {
      retire(fetch, false);
    }
    return;
  }

  // It failed, or was cancelled before somebody came to want it after all.
  const bool wanted = awaited || (fill_progress_ && fill_error_.code == Code::ok);
  if (done.status != DoneStatus::cancelled && !wanted) ++counters_.prefetch_failed;
  if (wanted && fetch.attempts < options_.read_attempts) {
    if (done.status != DoneStatus::cancelled) ++counters_.retries;
    if (awaited) fetch.priority = Priority::demand;
    post_read(fetch);
    return;
  }
  const Error error = read_error(fetch, done);
  if (fetch.into_arena()) {
    for (const uint32_t neuron : fetch.neurons) residency_.abandon(home, neuron);
    keep_fault(cache().call_if(&tierd_cache_1::dropped, "dropped", home, fetch.neurons.data(),
                               static_cast<uint32_t>(fetch.neurons.size()), TIERD_DROPPED_FAILED));
  }
  if (awaited) {
    std::erase(awaited_, &fetch);
    if (error_.code == Code::ok) error_ = error;
  } else if (fill_progress_ && fill_error_.code == Code::ok) {
    fill_error_ = error;
  }
  retire(fetch, true);
}

Task<Status> Intake::fill(std::vector<WantedAtStart> wanted, std::function<void(uint64_t)> progress,
                          std::function<bool()> stopping) {
  std::vector<Wish> wishes;
  Status status;
  for (WantedAtStart& from : wanted) {
    std::erase_if(from.neurons, [&](uint32_t n) { return residency_.slot(from.site, n) != kNoSlot; });
    if (from.neurons.size() > residency_.free_slots(from.site)) {
      status = cache().fault("ahead", fmt::format("more neurons of site {} than it has slots", from.site));
      break;
    }
    Wish& wish = wishes.emplace_back();
    wish.site = from.site;
    for (const uint32_t neuron : from.neurons) residency_.lease(from.site, neuron);
    wish.plan.verdicts.assign(from.neurons.size(), TIERD_VERDICT_KEEP);
    wish.plan.neurons = std::move(from.neurons);
  }

  fill_progress_ = progress ? std::move(progress) : [](uint64_t) {};
  fill_error_ = status.ok() ? Error{Code::ok, {}, {}} : status.error();
  for (auto& [site, step, plan] : wishes) {
    while (!plan.done() && fill_error_.code == Code::ok) {
      Fetch* started = nullptr;
      if (!start_next(plan, site, 0, Priority::migration, started)) co_await changed_;
      if (fill_error_.code == Code::ok && stopping()) fill_error_ = {Code::cancelled, "load", "interrupted"};
    }
    drop_plan(site, plan);
  }
  while (!fetches_.empty()) co_await changed_;
  fill_progress_ = nullptr;
  if (fill_error_.code != Code::ok) co_return fill_error_;
  co_return take_fault();
}

void Intake::give_up_all() {
  for (Wish& wish : wishes_) drop_plan(wish.site, wish.plan);
  wishes_.clear();
  std::vector<Fetch*> all;
  for (Fetch& fetch : fetches_) all.push_back(&fetch);
  for (Fetch* fetch : all) give_up(*fetch);
}

uint64_t Intake::slot_offset(SiteId site, uint32_t neuron) const {
  const SiteId home = domain(site);
  return options_.memory.arena_offset[home] +
         uint64_t{residency_.slot(home, neuron)} * sites_[home].slot_bytes;
}

uint64_t Intake::offset_in_pool(const Fetch& fetch, uint32_t index) const {
  if (fetch.into_arena()) return slot_offset(fetch.site, fetch.neurons[index]);
  return options_.memory.staging_offset + uint64_t{fetch.block} * staging_.block_bytes() +
         uint64_t{index} * sites_[fetch.site].slot_bytes;
}

Error Intake::read_error(const Fetch& fetch, const Done& done) const {
  const uint32_t bad = std::min<uint32_t>(done.first_bad, static_cast<uint32_t>(fetch.neurons.size() - 1));
  const uint32_t extent = sites_[fetch.site].first_extent + fetch.neurons[bad];
  const std::string origin =
      options_.describe_extent ? options_.describe_extent(extent) : fmt::format("extent {}", extent);
  switch (done.status) {
    case DoneStatus::corrupt:
      return {Code::corrupt, origin,
              "the checksum does not match; the store is damaged: remove it and convert again"};
    case DoneStatus::cancelled:
      return {Code::cancelled, origin, "the read was cancelled"};
    default:
      // The agent's word for a file that ends inside the extent.
      if (done.aux == ENODATA) {
        return {Code::io_error, origin, "the file ends here; the store was cut short while it was in use"};
      }
      return {Code::io_error, origin,
              fmt::format("read failed after {} attempts: {}", fetch.attempts,
                          done.aux != 0 ? std::string(std::strerror(done.aux))
                                        : fmt::format("status {}", static_cast<int>(done.status)))};
  }
}

}  // namespace tierd
