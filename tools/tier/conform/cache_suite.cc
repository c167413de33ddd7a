// Checks caches: a simulated kernel calls them as the scheduler does, with reads that land late or never,
// neurons in use, slots filled by another cache, and a tier that shrinks.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <span>

#include "core/kernel/active_set.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/set_view.h"
#include "tools/tier/conform/simulated_core.h"
#include "tools/tier/conform/suites.h"

namespace tierd {
namespace {

using Cache = Subject<tierd_cache_1>;

constexpr const char* kShares =
    "share: no edition gets more than it can have, all together no more than there is";
constexpr const char* kVerdicts = "admit: verdicts are keep, bypass, or refuse of a prefetch";
constexpr const char* kVictims = "admit: victims are of the same edition, evictable, each named once";
constexpr const char* kEnough = "admit: what is kept has a free slot or a victim";
constexpr const char* kNoWaste = "admit: nobody is evicted for nothing";
constexpr const char* kFill = "fill: editions that can keep what is listed, ascending neurons";
constexpr const char* kAhead = "ahead: later sites, ascending neurons of theirs, editions that they have";
constexpr const char* kMeanwhile = "idle: editions that it has, ascending neurons";
constexpr const char* kExpire = "expire: victims are of the same edition, evictable, each named once";
constexpr const char* kResize =
    "resize: victims are evictable and named once, and enough as far as there are any";
constexpr const char* kResplit = "resplit: answers 0 or 1";

// The slots and reads in flight of the simulated kernel.
class Tier {
 public:
  Tier(std::span<const Edition> editions, std::vector<uint32_t> slots) : editions_(editions), limit_(slots) {
    residencies_.emplace_back(editions, slots);
  }

  Residency& residency() { return residencies_.front(); }
  const std::deque<Residency>& residencies() const { return residencies_; }
  // Returns how many free slots may be filled within the limit of a shrunk tier.
  uint32_t free_slots(EditionId edition) const {
    const Residency& here = residencies_.front();
    const uint32_t taken = here.max_slots(edition) - here.free_slots(edition);
    return limit_[edition] > taken ? std::min(limit_[edition] - taken, here.free_slots(edition)) : 0;
  }
  uint32_t limit(EditionId edition) const { return limit_[edition]; }
  void set_limits(std::vector<uint32_t> limits) { limit_ = std::move(limits); }
  bool evictable(const tierd_neuron& neuron) const {
    return neuron.edition < editions_.size() && neuron.neuron < editions_[neuron.edition].n &&
           residencies_.front().valid(neuron.edition, neuron.neuron) &&
           !residencies_.front().pinned(neuron.edition, neuron.neuron);
  }

 private:
  const std::span<const Edition> editions_;
  std::deque<Residency> residencies_;  // one
  std::vector<uint32_t> limit_;
};

// Returns the machine: units compute from the cache's memory; for half of the seeds, from a memory over it.
PluginWorld::Machine machine_of(uint64_t seed) {
  PluginWorld::Machine machine;
  machine.memory = 1;
  if (seed % 2 == 0) return machine;
  Memory& upper = machine.topology.memories.emplace_back();
  upper.name = "upper";
  upper.over = machine.memory;
  machine.topology.units.front().memory = 2;
  return machine;
}

struct Read {
  EditionId edition;
  std::vector<uint32_t> neurons;
};

// One run of a random trace through one or more caches, one after the other. Its random numbers come from
// `seed`, so that the same seed gives the same calls as long as the answers are the same.
class CacheTrace {
 public:
  CacheTrace(const StrategyChoice& choice, const SiteTable& sites, uint64_t seed, const SuiteOptions& options,
             Report& report)
      : choice_(choice),
        sites_(sites),
        editions_(sites.editions),
        machine_(machine_of(seed)),
        world_(sites, seed, naive_linear, machine_),
        random_(seed),
        seed_(seed),
        options_(options),
        report_(report) {}

  // Makes the cache and its tier. Returns false if the trace cannot be played.
  bool begin() {
    draw_heat();
    cache_ = Cache::make(choice_, world_, options_, report_);
    if (cache_ == nullptr) return false;
    uint64_t whole = 0;
    for (const Edition& edition : editions_) whole += uint64_t{edition.n} * edition.slot_bytes;
    const uint64_t sizes[] = {0, whole, whole / 2, whole / 10,
                              random_.below(1 + static_cast<uint32_t>(whole))};
    set_bytes(sizes[random_.below(5)], sizes[random_.below(5)]);
    std::vector<uint32_t> most;
    for (const Edition& edition : editions_) most.push_back(edition.n);
    const auto slots = share(*cache_, most);
    if (!slots) return false;
    tier_.emplace(editions_, *slots);
    world_.set_residencies(&tier_->residencies());
    fill();
    return well();
  }

  void step() {
    if (random_.below(3) == 0) begin_sequence();
    for (EditionId edition = 0; edition < editions_.size() && well(); ++edition) {
      if (random_.below(3) == 0) land_one();
      use(edition);
    }
    for (SiteId site = 0; site < sites_.size() && well(); ++site) ahead(site);
    if (random_.below(2) == 0) draw_heat();
    for (SiteId site = 0; site < sites_.size() && well(); ++site) idle(site);
    if (!well()) return;
    answered(cache_->strategy.call_if(&tierd_cache_1::end_step, "end_step"));
    if (well()) resplit();
    if (random_.below(8) == 0 && well()) resize(bytes_ / 4 * random_.below(5));
    if (random_.below(12) == 0 && well()) take_over();
    if (!sequences_.empty() && random_.below(3) == 0 && well()) end_sequence();
  }

  void end() {
    while (!reads_.empty() && well()) land_one();
  }

  bool well() const { return well_; }
  const Fingerprint& fingerprint() const { return fingerprint_; }

 private:
  // Sets the bytes that the cache may share out, and those of the cache over it.
  void set_bytes(uint64_t own, uint64_t upper) {
    bytes_ = own;
    std::vector<uint64_t> bytes(machine_.topology.memories.size(), upper);
    bytes.front() = own;
    world_.set_memory_bytes(bytes);
  }

  void answered(const Status& status) { well_ = well_ && check_answered(status, report_); }

  void begin_sequence() {
    // A number may be reused once its sequence has ended.
    const uint64_t sequence = random_.below(64);
    if (std::find(sequences_.begin(), sequences_.end(), sequence) != sequences_.end()) return;
    sequences_.push_back(sequence);
    answered(cache_->strategy.call_if(&tierd_cache_1::begin_sequence, "begin_sequence", sequence));
  }
  // After a take-over the sequence may have begun before this instance was made.
  void end_sequence() {
    const size_t which = random_.below(static_cast<uint32_t>(sequences_.size()));
    answered(cache_->strategy.call_if(&tierd_cache_1::end_sequence, "end_sequence", sequences_[which]));
    sequences_.erase(sequences_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  std::optional<std::vector<uint32_t>> share(Cache& cache, const std::vector<uint32_t>& most) {
    Guarded<uint32_t> slots(editions_.size());
    std::copy(most.begin(), most.end(), slots.data());
    answered(cache.strategy.call(&tierd_cache_1::share, "share", bytes_, slots.data()));
    if (!well() || !fits(slots, most)) return std::nullopt;
    return std::vector<uint32_t>(slots.data(), slots.data() + editions_.size());
  }

  bool fits(Guarded<uint32_t>& slots, const std::vector<uint32_t>& most) {
    uint64_t used = 0;
    bool right = true;
    for (EditionId e = 0; e < editions_.size(); ++e) {
      right = right && slots[e] <= most[e];
      used += uint64_t{slots[e]} * editions_[e].slot_bytes;
      fingerprint_.add(slots[e]);
    }
    report_.check(kShares, right && used <= bytes_,
                  [&] { return fmt::format("{} B of {} B in {} editions", used, bytes_, editions_.size()); });
    report_.check(kWithin, slots.intact(), [] { return "share wrote beyond the editions"; });
    well_ = well_ && right && used <= bytes_;
    return well_;
  }

  // Applies the cache's wishes before the first step.
  void fill() {
    if (cache_->strategy.table.fill == nullptr) return;
    answered(cache_->strategy.call_for_wishes(&tierd_cache_1::fill, "fill"));
    if (!well()) return;
    const WishList& wishes = *cache_->strategy.wishes;
    for (const WishList::Wish& wish : wishes.all()) {
      const bool known =
          wish.edition < editions_.size() && wish.site == TIERD_NO_SITE && wish.memory == TIERD_NO_MEMORY;
      report_.check(kFill, known, [&] {
        return fmt::format("edition {} of {}, site {}, memory {}", wish.edition, editions_.size(), wish.site,
                           wish.memory);
      });
      if (!known) continue;
      const uint32_t n = wish.all ? editions_[wish.edition].n : wish.n;
      report_.check(kFill, n <= tier_->limit(wish.edition), [&] {
        return fmt::format("{} neurons for {} slots of edition {}", n, tier_->limit(wish.edition),
                           wish.edition);
      });
      const uint32_t most = editions_[wish.edition].n;
      report_.check(kFill, n <= most, [&] { return fmt::format("{} of {} neurons", n, most); });
      if (!wish.all && n <= most) check_list(kFill, wishes.neurons(wish).data(), n, most, report_);
      fingerprint_.add(uint64_t{wish.edition} << 32 | n);
    }
  }

  // Checks the cache's wishes for the passes after this site.
  void ahead(SiteId site) {
    if (cache_->strategy.table.ahead == nullptr) return;
    answered(cache_->strategy.call_for_wishes(&tierd_cache_1::ahead, "ahead", site));
    if (!well()) return;
    const Status sound = check_wishes(*cache_->strategy.wishes, site, sites_, machine_.topology);
    report_.check(kAhead, sound.ok(), [&] { return sound.error().detail; });
    for (const WishList::Wish& wish : cache_->strategy.wishes->all())
      fingerprint_.add(uint64_t{wish.site} << 32 | wish.distance);
  }

  // Draws the heat of the neurons from now on; for a third of the seeds there is no source of heat.
  void draw_heat() {
    heat_.resize(sites_.size());
    for (SiteId site = 0; site < sites_.size(); ++site) {
      heat_[site].resize(sites_[site].n);
      for (uint8_t& heat : heat_[site]) heat = static_cast<uint8_t>(random_.below(TIERD_HOTTEST + 1));
    }
    world_.set_heat(seed_ % 3 == 0 ? nullptr : &heat_);
  }

  // Applies the cache's wishes while no unit computes from the memories next to its own.
  void idle(SiteId site) {
    if (cache_->strategy.table.idle == nullptr) return;
    auto wanted = wanted_meanwhile(cache_->strategy, site, editions_, machine_.topology.memories.front());
    report_.check(kMeanwhile, wanted.ok(), [&] { return wanted.error().line(); });
    well_ = well_ && wanted.ok();
    if (!well()) return;
    for (auto& [edition, neurons] : *wanted) {
      fingerprint_.add(uint64_t{edition} << 32 | neurons.size());
      std::erase_if(neurons, [&, e = edition](uint32_t neuron) {
        return tier_->residency().valid(e, neuron) || tier_->residency().leased(e, neuron);
      });
      if (!neurons.empty() && well()) admit(edition, neurons, TIERD_PRIORITY_MIGRATION);
    }
  }

  // Plays the pass of a site that has this edition.
  void use(EditionId edition) {
    const std::vector<uint32_t> active = draw_set(editions_[edition].n, random_);
    Residency& residency = tier_->residency();
    std::vector<uint32_t> pinned, missing;
    for (const uint32_t neuron : active) {
      if (residency.valid(edition, neuron)) {
        residency.pin(edition, neuron);
        pinned.push_back(neuron);
      } else if (!residency.leased(edition, neuron)) {
        missing.push_back(neuron);
      }
    }
    if (!missing.empty()) {
      admit(edition, missing, random_.below(3) == 0 ? TIERD_PRIORITY_PREFETCH : TIERD_PRIORITY_DEMAND);
    }
    for (const uint32_t neuron : pinned) residency.unpin(edition, neuron);
    if (!well()) return;
    const ActiveSet set =
        random_.below(4) == 0 ? ActiveSet::all(editions_[edition].n) : ActiveSet::of(active);
    const tierd_set_view used = edition_set(edition, editions_[edition], set, 1, TIERD_SET_TRUE);
    answered(cache_->strategy.call_if(&tierd_cache_1::touch, "touch", &used));
    if (well()) expire(edition);
  }

  void expire(EditionId edition) {
    if (cache_->strategy.table.expire == nullptr) return;
    const uint32_t n = editions_[edition].n;
    Guarded<tierd_neuron> victims(n);
    tierd_victims_out out{n, 0, victims.data()};
    answered(cache_->strategy.call(&tierd_cache_1::expire, "expire", edition, &out));
    if (!well()) return;
    report_.check(kWithin, victims.intact(), [] { return "expire wrote beyond its answer"; });
    std::vector<uint32_t> leaving;
    well_ = check_victims(kExpire, out, n, edition, leaving);
    if (well()) evict(edition, leaving, TIERD_DROPPED_EVICTED);
  }

  void admit(EditionId edition, const std::vector<uint32_t>& missing, int priority) {
    const ActiveSet set = ActiveSet::of(std::vector<uint32_t>(missing));
    const tierd_set_view view = edition_set(edition, editions_[edition], set, 1, TIERD_SET_PREDICTED);
    const auto n = static_cast<uint32_t>(missing.size());
    Guarded<uint8_t> verdicts(n);
    Guarded<tierd_neuron> victims(n);
    tierd_victims_out out{n, 0, victims.data()};
    const uint32_t free_slots = tier_->free_slots(edition);
    answered(cache_->strategy.call(&tierd_cache_1::admit, "admit", &view, priority, free_slots,
                                   verdicts.data(), &out));
    if (!well()) return;
    report_.check(kWithin, verdicts.intact() && victims.intact(),
                  [] { return "admit wrote beyond its answer"; });

    Read read{edition, {}};
    for (uint32_t i = 0; i < n; ++i) {
      const bool known = verdicts[i] == TIERD_VERDICT_KEEP || verdicts[i] == TIERD_VERDICT_BYPASS ||
                         (verdicts[i] == TIERD_VERDICT_REFUSE && priority != TIERD_PRIORITY_DEMAND);
      report_.check(kVerdicts, known,
                    [&] { return fmt::format("verdict {} for neuron {}", verdicts[i], missing[i]); });
      well_ = well_ && known;
      fingerprint_.add(verdicts[i]);
      if (verdicts[i] == TIERD_VERDICT_KEEP) read.neurons.push_back(missing[i]);
    }
    std::vector<uint32_t> leaving;
    const bool fits = check_victims(kVictims, out, n, edition, leaving);
    const bool enough = read.neurons.size() <= free_slots + leaving.size();
    report_.check(kEnough, enough, [&] {
      return fmt::format("{} kept with {} free slots and {} victims", read.neurons.size(), free_slots,
                         leaving.size());
    });
    report_.check(kNoWaste, free_slots + leaving.size() <= std::max<size_t>(read.neurons.size(), free_slots),
                  [&] {
                    return fmt::format("{} victims for {} kept and {} free slots", leaving.size(),
                                       read.neurons.size(), free_slots);
                  });
    well_ = well_ && fits && enough;
    if (!well()) return;
    evict(edition, leaving, TIERD_DROPPED_EVICTED);
    for (const uint32_t neuron : read.neurons) tier_->residency().lease(edition, neuron);
    if (!read.neurons.empty()) reads_.push_back(std::move(read));
  }

  // Appends the victims of an answer to `leaving`. Returns false if one is no evictable neuron of `edition`.
  bool check_victims(const char* rule, const tierd_victims_out& out, uint32_t cap, EditionId edition,
                     std::vector<uint32_t>& leaving) {
    report_.check(rule, out.n <= cap,
                  [&] { return fmt::format("{} victims where {} have room", out.n, cap); });
    if (out.n > cap) return false;
    for (uint32_t i = 0; i < out.n; ++i) {
      const tierd_neuron& victim = out.item[i];
      const bool right = victim.edition == edition && tier_->evictable(victim) &&
                         std::find(leaving.begin(), leaving.end(), victim.neuron) == leaving.end();
      report_.check(rule, right, [&] {
        return fmt::format("neuron {} of edition {} as victim number {} for edition {}", victim.neuron,
                           victim.edition, i, edition);
      });
      if (!right) return false;
      fingerprint_.add(uint64_t{victim.edition} << 32 | victim.neuron);
      leaving.push_back(victim.neuron);
    }
    return true;
  }

  void evict(EditionId edition, std::vector<uint32_t> leaving, int why) {
    if (leaving.empty()) return;
    for (const uint32_t neuron : leaving) tier_->residency().evict(edition, neuron);
    answered(cache_->strategy.call_if(&tierd_cache_1::dropped, "dropped", edition, leaving.data(),
                                      static_cast<uint32_t>(leaving.size()), why));
  }

  // Ends a read, in any order: its bytes have landed, or it failed.
  void land_one() {
    if (reads_.empty()) return;
    const size_t which = random_.below(static_cast<uint32_t>(reads_.size()));
    const Read read = std::move(reads_[which]);
    reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(which));
    const auto n = static_cast<uint32_t>(read.neurons.size());
    if (random_.below(6) == 0) {
      for (const uint32_t neuron : read.neurons) tier_->residency().abandon(read.edition, neuron);
      answered(cache_->strategy.call_if(&tierd_cache_1::dropped, "dropped", read.edition, read.neurons.data(),
                                        n, TIERD_DROPPED_FAILED));
      return;
    }
    for (const uint32_t neuron : read.neurons) tier_->residency().landed(read.edition, neuron);
    answered(
        cache_->strategy.call_if(&tierd_cache_1::landed, "landed", read.edition, read.neurons.data(), n));
  }

  // Gives the cache the split that it requests, with no read in flight.
  void resplit() {
    if (cache_->strategy.table.resplit == nullptr) return;
    Guarded<uint32_t> wanted(1);
    answered(cache_->strategy.call(&tierd_cache_1::resplit, "resplit", wanted.data()));
    if (!well()) return;
    report_.check(kResplit, wanted[0] <= 1, [&] { return fmt::format("answered {}", wanted[0]); });
    report_.check(kWithin, wanted.intact(), [] { return "resplit wrote beyond its answer"; });
    fingerprint_.add(wanted[0]);
    if (wanted[0] != 1) return;
    while (!reads_.empty() && well()) land_one();
    if (well()) resize(bytes_);
  }

  // Changes the tier's size while reads are in flight.
  void resize(uint64_t bytes) {
    if (cache_->strategy.table.resize == nullptr) return;
    set_bytes(bytes, bytes_);
    std::vector<uint32_t> most;
    uint32_t valid = 0;
    for (EditionId e = 0; e < editions_.size(); ++e) {
      most.push_back(tier_->residency().max_slots(e));
      valid += tier_->residency().valid_count(e);
    }
    Guarded<uint32_t> slots(editions_.size());
    std::copy(most.begin(), most.end(), slots.data());
    Guarded<tierd_neuron> victims(valid);
    tierd_victims_out out{valid, 0, victims.data()};
    answered(cache_->strategy.call(&tierd_cache_1::resize, "resize", bytes_, slots.data(), &out));
    if (!well() || !fits(slots, most)) return;
    report_.check(kWithin, victims.intact(), [] { return "resize wrote beyond its answer"; });
    report_.check(kResize, out.n <= valid, [&] { return fmt::format("{} victims of {}", out.n, valid); });
    if (out.n > valid) return;
    for (EditionId e = 0; e < editions_.size() && well(); ++e) {
      std::vector<tierd_neuron> of_edition;
      std::copy_if(out.item, out.item + out.n, std::back_inserter(of_edition),
                   [&](const tierd_neuron& victim) { return victim.edition == e; });
      const auto named = static_cast<uint32_t>(of_edition.size());
      tierd_victims_out part{named, named, of_edition.data()};
      std::vector<uint32_t> leaving;
      if (!check_victims(kResize, part, part.n, e, leaving)) {
        well_ = false;
        return;
      }
      uint32_t evictable = 0;
      for (uint32_t neuron = 0; neuron < editions_[e].n; ++neuron)
        evictable += tier_->evictable({e, neuron}) ? 1 : 0;
      const uint32_t here = tier_->residency().valid_count(e);
      const uint32_t surplus = here > slots[e] ? here - slots[e] : 0;
      report_.check(kResize, leaving.size() >= std::min(surplus, evictable), [&] {
        return fmt::format("{} victims where {} of {} neurons have to leave edition {}", leaving.size(),
                           surplus, here, e);
      });
      evict(e, leaving, TIERD_DROPPED_SHRUNK);
    }
    tier_->set_limits(std::vector<uint32_t>(slots.data(), slots.data() + editions_.size()));
  }

  // Replaces the cache by a new instance, with all neurons in their slots and no read in flight.
  void take_over() {
    end();
    if (!well()) return;
    auto next = Cache::make(choice_, world_, options_, report_);
    if (next == nullptr) {
      well_ = false;
      return;
    }
    std::vector<uint32_t> most;
    for (EditionId e = 0; e < editions_.size(); ++e) most.push_back(tier_->limit(e));
    const auto slots = share(*next, most);
    if (!slots) return;
    std::vector<std::vector<uint32_t>> resident(editions_.size());
    std::vector<tierd_set_view> sets;
    for (EditionId e = 0; e < editions_.size(); ++e) {
      for (uint32_t neuron = 0; neuron < editions_[e].n; ++neuron) {
        if (tier_->residency().valid(e, neuron)) resident[e].push_back(neuron);
      }
      if (resident[e].empty()) continue;
      const auto n = static_cast<uint32_t>(resident[e].size());
      sets.push_back(edition_set(e, editions_[e], resident[e].data(), n, 0, TIERD_SET_TRUE));
    }
    if (next->strategy.table.adopt != nullptr) {
      std::vector<const tierd_set_view*> views;
      for (const tierd_set_view& set : sets) views.push_back(&set);
      answered(next->strategy.call(&tierd_cache_1::adopt, "adopt", views.data(),
                                   static_cast<uint32_t>(views.size())));
    } else {
      for (const tierd_set_view& set : sets) {
        answered(next->strategy.call_if(&tierd_cache_1::landed, "landed", set.edition, set.idx, set.n));
      }
    }
    cache_ = std::move(next);
  }

  const StrategyChoice& choice_;
  const SiteTable& sites_;
  const std::vector<Edition>& editions_;
  const PluginWorld::Machine machine_;
  PluginWorld world_;
  Random random_;
  const uint64_t seed_;
  std::vector<std::vector<uint8_t>> heat_;  // [sites][n]
  const SuiteOptions& options_;
  Report& report_;
  std::unique_ptr<Cache> cache_;
  std::optional<Tier> tier_;
  std::deque<Read> reads_;
  std::vector<uint64_t> sequences_;  // that have begun and not ended
  uint64_t bytes_ = 0;
  Fingerprint fingerprint_;
  bool well_ = true;
};

}  // namespace

void check_cache(const StrategyChoice& choice, const SuiteOptions& options, Report& report) {
  play_side_by_side<CacheTrace>(choice, options, report);
}

}  // namespace tierd
