// How bytes come in: admission by the cache, reads into arena slots or staging blocks, look-ahead, retries.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/align.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/scheduler.h"
#include "core/kernel/set_view.h"

namespace tierd {
namespace {

// Blocks that look-ahead leaves free, so that a demand never waits for the compute of a later site.
constexpr uint32_t kDemandBlocks = 1;

}  // namespace

Status Scheduler::ask_cache(SiteId site, std::vector<uint32_t> missing, Priority priority, bool bypass,
                            Plan& plan) {
  if (missing.empty()) return {};
  const SiteId home = domain(site);
  const size_t first = plan.neurons.size();
  plan.neurons.insert(plan.neurons.end(), missing.begin(), missing.end());
  plan.verdicts.resize(plan.neurons.size(), TIERD_VERDICT_BYPASS);
  if (bypass) return {};

  auto& cache = strategies_.cache;
  const auto fault = [&](const std::string& what) {
    drop_plan(site, plan);
    return cache.fault("admit", what);
  };
  const ActiveSet set = ActiveSet::of(std::move(missing));
  tierd_set_view view = set_view(home, set, 1, TIERD_SET_PREDICTED);
  victims_.resize(set.size());
  tierd_victims_out out{set.size(), 0, victims_.data()};
  uint8_t* verdicts = plan.verdicts.data() + first;
  const Status asked = cache.call(&tierd_cache_1::admit, "admit", &view, static_cast<int>(priority),
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
    if (observer() != nullptr) observer()->evicted(home, dropped);
    keep_fault(cache.call_if(&tierd_cache_1::dropped, "dropped", home, dropped.data(),
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

bool Scheduler::start_next(Plan& plan, SiteId site, uint32_t step, Priority priority, Fetch*& started) {
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

void Scheduler::post_read(Fetch& fetch) {
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
  message.step = current_ != nullptr ? current_->pass.step : 0;
  message.site = fetch.site;
  if (fetch.priority == Priority::prefetch) message.expires_step = fetch.step;
  ++fetch.attempts;
  fetch.state = FetchState::reading;
  fetch.message = dispatcher_.post(message, units_, options_.compute_agent, options_.memory_pool, *this);
  fetch_of_message_.resize(std::max<size_t>(fetch_of_message_.size(), fetch.message.slot + 1u));
  fetch_of_message_[fetch.message.slot] = &fetch;
}

void Scheduler::pump_wishes() {
  // What a demand waits for is not given to the look-ahead.
  if (current_ != nullptr && !current_->plan.done()) return;
  while (!wishes_.empty()) {
    Wish& wish = wishes_.front();
    while (!wish.plan.done()) {
      Fetch* started = nullptr;
      if (!start_next(wish.plan, wish.site, wish.step, Priority::prefetch, started)) return;
    }
    wishes_.pop_front();
  }
}

Scheduler::Plan Scheduler::take_wish(SiteId site, uint32_t step) {
  for (auto wish = wishes_.begin(); wish != wishes_.end(); ++wish) {
    if (wish->site != site || wish->step != step) continue;
    Plan plan = std::move(wish->plan);
    wishes_.erase(wish);
    return plan;
  }
  return {};
}

void Scheduler::claim_from_wishes(SiteId home, uint32_t neuron) {
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

void Scheduler::drop_plan(SiteId site, Plan& plan) {
  for (; !plan.done(); ++plan.next) {
    if (plan.verdicts[plan.next] == TIERD_VERDICT_KEEP)
      residency_.abandon(domain(site), plan.neurons[plan.next]);
  }
}

// Room for a demand: the look-ahead that is farthest from being used gives way.
bool Scheduler::free_a_block() {
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
void Scheduler::give_up(Fetch& fetch) {
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

void Scheduler::retire(Fetch& fetch, bool used) {
  if (!used && !fetch.into_arena()) counters_.wasted += fetch.neurons.size();
  if (!fetch.into_arena()) staging_.give_back(fetch.block);
  unused_.splice(unused_.begin(), fetches_, fetch.place);
}

bool Scheduler::is_awaited(const Fetch& fetch) const {
  return current_ != nullptr &&
         std::find(current_->awaited.begin(), current_->awaited.end(), &fetch) != current_->awaited.end();
}

// A fault in an answer to mere news is kept until somebody can be told.
void Scheduler::keep_fault(const Status& answer) {
  if (!answer.ok() && fault_.code == Code::ok) fault_ = answer.error();
}

Status Scheduler::take_fault() {
  if (fault_.code == Code::ok) return {};
  return std::exchange(fault_, Error{Code::ok, {}, {}});
}

// Whether memory of this site and step still belongs to a read.
bool Scheduler::reading(SiteId site, uint32_t step) const {
  return std::any_of(fetches_.begin(), fetches_.end(), [&](const Fetch& fetch) {
    return fetch.site == site && fetch.step == step && fetch.state == FetchState::reading;
  });
}

void Scheduler::on_read_done(const Message& message, const Done& done) {
  Fetch& fetch = *fetch_of_message_[message.id.slot];
  TIERD_CHECK(fetch.message == message.id);
  counters_.read_bytes += done.bytes;
  const bool awaited = is_awaited(fetch);
  const SiteId home = domain(fetch.site);

  if (done.status == DoneStatus::ok) {
    fetch.state = FetchState::landed;
    if (fetch.into_arena()) {
      for (const uint32_t neuron : fetch.neurons) residency_.landed(home, neuron);
      keep_fault(strategies_.cache.call_if(&tierd_cache_1::landed, "landed", home, fetch.neurons.data(),
                                           static_cast<uint32_t>(fetch.neurons.size())));
      if (fill_progress_) fill_progress_(done.bytes);
      if (awaited) {
        // In use until the pass ends: not to be evicted before it is computed.
        for (const uint32_t neuron : fetch.neurons) {
          residency_.pin(home, neuron);
          current_->pinned.push_back(neuron);
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
    keep_fault(strategies_.cache.call_if(&tierd_cache_1::dropped, "dropped", home, fetch.neurons.data(),
                                         static_cast<uint32_t>(fetch.neurons.size()), TIERD_DROPPED_FAILED));
  }
  if (awaited) {
    std::erase(current_->awaited, &fetch);
    if (!current_->failed()) current_->error = error;
  } else if (fill_progress_ && fill_error_.code == Code::ok) {
    fill_error_ = error;
  }
  retire(fetch, true);
}

Task<Status> Scheduler::fill(std::function<void(uint64_t)> progress) {
  if (observer() != nullptr) observer()->fill_begins();
  auto asked = wanted_at_start(strategies_.cache, sites_);
  if (!asked.ok()) co_return asked.error();
  std::vector<Wish> wanted;
  Status status;
  for (WantedAtStart& from : *asked) {
    std::erase_if(from.neurons, [&](uint32_t n) { return residency_.slot(from.site, n) != kNoSlot; });
    if (from.neurons.size() > residency_.free_slots(from.site)) {
      status = strategies_.cache.fault("ahead",
                                       fmt::format("more neurons of site {} than it has slots", from.site));
      break;
    }
    Wish& wish = wanted.emplace_back();
    wish.site = from.site;
    for (const uint32_t neuron : from.neurons) residency_.lease(from.site, neuron);
    wish.plan.verdicts.assign(from.neurons.size(), TIERD_VERDICT_KEEP);
    wish.plan.neurons = std::move(from.neurons);
  }

  fill_progress_ = progress ? std::move(progress) : [](uint64_t) {};
  fill_error_ = status.ok() ? Error{Code::ok, {}, {}} : status.error();
  for (auto& [site, step, plan] : wanted) {
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

Task<Status> Scheduler::drain() {
  if (observer() != nullptr) observer()->drain_begins();
  for (Wish& wish : wishes_) drop_plan(wish.site, wish.plan);
  wishes_.clear();
  std::fill(wished_.begin(), wished_.end(), 0);
  std::vector<Fetch*> all;
  for (Fetch& fetch : fetches_) all.push_back(&fetch);
  for (Fetch* fetch : all) give_up(*fetch);
  while (!fetches_.empty()) co_await changed_;
  fault_ = {Code::ok, {}, {}};  // the plugin's quarantine tells it from here on
  co_return Status{};
}

uint64_t Scheduler::slot_offset(SiteId site, uint32_t neuron) const {
  const SiteId home = domain(site);
  return options_.arena_offset[home] + uint64_t{residency_.slot(home, neuron)} * sites_[home].slot_bytes;
}

uint64_t Scheduler::offset_in_pool(const Fetch& fetch, uint32_t index) const {
  if (fetch.into_arena()) return slot_offset(fetch.site, fetch.neurons[index]);
  return options_.staging_offset + uint64_t{fetch.block} * staging_.block_bytes() +
         uint64_t{index} * sites_[fetch.site].slot_bytes;
}

Error Scheduler::read_error(const Fetch& fetch, const Done& done) const {
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
