// A kernel between a flash agent whose reads end when the test says so, a compute agent that remembers what
// it was asked, and strategies whose answers the test gives. Bytes are checked: a read stamps the number of
// its extent where it was told to, and compute finds the stamp of every neuron that it is given.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/kernel/dispatcher.h"
#include "core/kernel/scheduler.h"

namespace tierd {

inline constexpr uint32_t kSlot = 4096;
inline constexpr uint32_t kUnread = 0xdeadbeef;

inline constexpr uint64_t kSequences[64] = {0};  // of the rows

using Neurons = std::vector<uint32_t>;

struct Read {
  Message message;
  Neurons extents;
};

// Reads that the test ends. The oldest is first.
class ManualFlash final : public Agent {
 public:
  ManualFlash(uint32_t credits, const PoolTable& pools) : credits_(credits), pools_(pools) {}
  std::string_view name() const override { return "manual flash"; }
  uint32_t credits() const override { return credits_; }
  Submit submit(const Message& message) override {
    EXPECT_LT(held_, credits_);
    ++held_;
    if (message.op == Op::read) {
      Read read{message, {}};
      for (const Unit& unit : PoolTable::units(pools_.resolve(message.list)))
        read.extents.push_back(unit.unit);
      open.push_back(read);
      started.push_back(read);
      stamp(message, [](const Unit&) { return kUnread; });
      most_open = std::max(most_open, open.size());
    } else {
      MessageId id;
      std::memcpy(&id, pools_.resolve(message.list).data(), sizeof id);
      (message.op == Op::cancel ? cancels : raises).push_back(id);
      answer(message.id, DoneStatus::ok, 0, 0);
    }
    return Submit::ok;
  }
  Drive drive() override { return Drive::idle; }
  size_t poll(std::span<Done> done) override {
    const size_t n = std::min(done.size(), done_.size());
    std::copy_n(done_.begin(), n, done.begin());
    done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(n));
    held_ -= static_cast<uint32_t>(n);
    return n;
  }
  uint64_t service_ns(const Message&) const override { return 0; }

  // Ends open[i].
  void finish(size_t i = 0, DoneStatus status = DoneStatus::ok, uint32_t first_bad = 0, uint16_t error = 5) {
    ASSERT_LT(i, open.size());
    const Message message = open[i].message;
    const uint64_t bytes = open[i].extents.size() * kSlot;
    open.erase(open.begin() + static_cast<ptrdiff_t>(i));
    if (status == DoneStatus::ok) stamp(message, [](const Unit& unit) { return unit.unit; });
    answer(message.id, status, status == DoneStatus::io_error ? error : 0, first_bad,
           status == DoneStatus::ok ? bytes : 0);
  }
  bool was_cancelled(const Read& read) const {
    return std::find(cancels.begin(), cancels.end(), read.message.id) != cancels.end();
  }

  std::vector<Read> open;
  std::vector<Read> started;
  std::vector<MessageId> cancels;
  std::vector<MessageId> raises;
  size_t most_open = 0;

 private:
  template <class Value>
  void stamp(const Message& message, Value value) {
    const auto list = pools_.resolve(message.list);
    const UnitList& header = PoolTable::header(list);
    for (const Unit& unit : PoolTable::units(list)) {
      const uint32_t number = value(unit);
      std::memcpy(pools_.resolve(header.agent, header.pool, unit.offset, sizeof number), &number,
                  sizeof number);
    }
  }
  void answer(MessageId id, DoneStatus status, uint16_t aux, uint32_t first_bad, uint64_t bytes = 0) {
    Done done;
    done.id = id;
    done.status = status;
    done.aux = aux;
    done.first_bad = first_bad;
    done.bytes = bytes;
    done_.push_back(done);
  }
  const uint32_t credits_;
  const PoolTable& pools_;
  uint32_t held_ = 0;
  std::vector<Done> done_;
};

struct Computed {
  SiteId site = 0;
  uint32_t step = 0;
  Op op = Op::run;
  bool before = false;
  bool after = false;
  std::vector<uint32_t> neurons;
  uint16_t from = kKernel;  // copy: the agent whose results they are, or
  bool input = false;       // whose input it is
  bool partial = false;
  bool measured = false;
  std::map<uint32_t, uint64_t> rows = {};  // of a neuron that not all rows use: those that do
};

// What a segment before leaves in the activations, and what a neuron gives to a row.
inline float input_value(SiteId site, uint32_t row, uint32_t column) {
  return static_cast<float>(100 * site + 10 * row + column);
}
inline float contribution_value(uint32_t row, uint32_t neuron) {
  return (row + neuron) % 3 == 0 ? 0 : static_cast<float>(1 + row + neuron);
}

class RecordingCompute final : public Agent {
 public:
  RecordingCompute(uint32_t credits, const PoolTable& pools, const std::vector<Site>& sites)
      : credits_(credits), pools_(pools), sites_(sites) {}
  std::string_view name() const override { return "recording compute"; }
  uint32_t credits() const override { return credits_; }
  Submit submit(const Message& message) override {
    EXPECT_LT(queue_.size() + done_.size(), credits_);
    queue_.push_back(message);
    return Submit::ok;
  }
  Drive drive() override {
    if (queue_.empty() || hold) return Drive::idle;
    const Message message = queue_.front();
    queue_.pop_front();
    const auto list = pools_.resolve(message.list);
    const UnitList& header = PoolTable::header(list);
    if (message.op == Op::move || message.op == Op::resize) return rearrange(message, header.pool);
    Computed computed{message.site,
                      message.step,
                      message.op,
                      (message.flags & kRunBefore) != 0,
                      (message.flags & kRunAfter) != 0,
                      {},
                      message.op == Op::copy ? header.agent : kKernel,
                      (message.flags & kInput) != 0};
    for (const Unit& unit : PoolTable::units(list)) {
      computed.neurons.push_back(unit.unit);
      if (message.op == Op::copy) continue;
      const Site& site = sites_[message.site];
      const std::byte* slot = pools_.resolve(header.agent, header.pool, unit.offset, kSlot);
      for (uint32_t piece = 0; piece < site.pieces; ++piece) {
        uint32_t stamp = 0;
        std::memcpy(&stamp, slot + piece * site.piece_bytes, sizeof stamp);
        EXPECT_EQ(stamp, site.first_extent + piece * site.n + unit.unit) << "the bytes are not the neuron's";
      }
    }
    if (message.op != Op::copy) {
      EXPECT_EQ(message.op, computed.neurons.empty() ? Op::run : Op::compute);
      use_activations(message, computed);
    }
    if (order != nullptr) order->push_back(text(message.agent, computed));
    log.push_back(std::move(computed));
    Done done;
    done.id = message.id;
    done.status = fail_next ? DoneStatus::internal : DoneStatus::ok;
    fail_next = false;
    done_.push_back(done);
    return Drive::busy;
  }
  size_t poll(std::span<Done> done) override {
    const size_t n = std::min(done.size(), done_.size());
    std::copy_n(done_.begin(), n, done.begin());
    done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(n));
    return n;
  }
  uint64_t service_ns(const Message&) const override { return 0; }

  // "1 compute 0,2", "2 copy input of 1", "1 copy 1,3 of 2", "1 run B".
  static std::string text(uint16_t agent, const Computed& c) {
    std::string line = std::to_string(agent) + (c.op == Op::run    ? " run"
                                                : c.op == Op::copy ? " copy"
                                                                   : " compute");
    if (c.input) line += " input";
    for (size_t i = 0; i < c.neurons.size(); ++i) line += (i == 0 ? " " : ",") + std::to_string(c.neurons[i]);
    if (c.from != kKernel) line += " of " + std::to_string(c.from);
    return line + (c.before ? " B" : "") + (c.after ? " A" : "");
  }

  uint64_t arena_bytes = 0;                   // at the beginning of its memory
  std::vector<std::string>* order = nullptr;  // where it tells what it does, beside others
  bool hold = false;                          // nothing is computed until released
  bool fail_next = false;                     // the next message fails
  std::vector<Computed> log;

 private:
  static constexpr uint16_t kActivations = 1;  // pool
  float& at(const Message& message, const ActivationPlace& place, uint32_t row, uint32_t column) const {
    const uint64_t floats = uint64_t{row} * place.stride + column;
    std::byte* begin =
        pools_.resolve(message.agent, kActivations, place.offset, (floats + 1) * sizeof(float));
    return reinterpret_cast<float*>(begin)[floats];
  }
  // Bytes that are not in use are lost at once.
  Drive rearrange(const Message& message, uint16_t pool) {
    const std::span<const Unit> units = PoolTable::units(pools_.resolve(message.list));
    std::string line = std::to_string(message.agent) + (message.op == Op::move ? " move" : " use");
    const std::span<std::byte> arena = pools_.memory(message.agent, pool).first(arena_bytes);
    std::vector<std::byte> kept(arena.size());
    for (const auto& [first, second] : units) {
      const uint64_t from = first * kSpanUnit, to = second * kSpanUnit;
      line += " " + std::to_string(from / kSlot) + "-" + std::to_string(to / kSlot);
      if (fail_next) continue;
      if (message.op == Op::move) {
        std::memcpy(arena.data() + to, arena.data() + from, message.aux.bytes);
      } else {
        std::copy(arena.data() + from, arena.data() + to, kept.data() + from);
      }
    }
    if (message.op == Op::resize && !fail_next) std::copy(kept.begin(), kept.end(), arena.begin());
    if (order != nullptr) order->push_back(line);
    Done done;
    done.id = message.id;
    done.status = std::exchange(fail_next, false) ? DoneStatus::internal : DoneStatus::ok;
    done_.push_back(done);
    return Drive::busy;
  }
  void use_activations(const Message& message, Computed& computed) const {
    const Site& site = sites_[message.site];
    computed.partial = (message.flags & kPartial) != 0;
    computed.measured = (message.flags & kMeasure) != 0;
    for (uint32_t r = 0; r < message.rows && computed.before && site.input.there(); ++r) {
      for (uint32_t j = 0; j < site.n_in; ++j)
        at(message, site.input, r, j) = input_value(message.site, r, j);
    }
    for (const uint32_t neuron : computed.neurons) {
      for (uint32_t r = 0; r < message.rows && computed.measured; ++r)
        at(message, site.contribution, r, neuron) = contribution_value(r, neuron);
      if (message.aux.bytes == 0) continue;
      const auto* masks = reinterpret_cast<const uint64_t*>(pools_.resolve(message.aux).data());
      computed.rows[neuron] = masks[neuron];  // at most 64 rows
    }
  }

  const uint32_t credits_;
  const PoolTable& pools_;
  const std::vector<Site>& sites_;
  std::deque<Message> queue_;
  std::vector<Done> done_;
};

struct Ahead {
  SiteId site;
  uint32_t distance;
  std::optional<Neurons> neurons = std::nullopt;  // none: all
};

// What the strategies answer. Unset: everything is active, nothing is wished for, everything bypasses.
struct Script {
  std::function<int(SiteId, tierd_set_out*)> predict;
  std::function<void(SiteId, const tierd_rows_view*)> sees;  // before it predicts
  std::function<void(const tierd_set_view* predicted, const tierd_set_view* truth)> observe;
  std::function<std::vector<Ahead>(SiteId)> look_ahead;
  std::function<int(const tierd_set_view*, uint8_t*)> assign;
  std::function<int(const tierd_set_view*, uint8_t*)> choose;
  std::function<int(const tierd_set_view*, int, uint32_t, uint8_t*, tierd_victims_out*)> admit;
  std::function<void(SiteId, tierd_victims_out*)> expire;
  std::function<int(uint64_t, uint32_t*, tierd_victims_out*)> resize;
  uint32_t resplit = 0;  // what the cache answers
  std::function<std::vector<Ahead>()> fill;
  std::map<std::string, int> code;  // of the other functions
  std::vector<std::string> calls;   // of the cache: "landed 2:1,3"

  int call(const std::string& name, SiteId site, const uint32_t* idx, uint32_t n) {
    std::string line = name + " " + std::to_string(site) + ":";
    for (uint32_t i = 0; i < n; ++i)
      line += (i == 0 ? "" : ",") + std::to_string(idx == nullptr ? i : idx[i]);
    calls.push_back(line);
    return code[name];
  }
  int hand_over(const std::vector<Ahead>& wishes, const char* function, tierd_ahead_out* out) {
    lists_ = wishes;
    out->n = 0;
    for (const Ahead& wish : lists_) {
      if (out->n == out->cap) break;
      out->item[out->n++] = {wish.site, wish.distance,
                             wish.neurons ? static_cast<uint32_t>(wish.neurons->size()) : 0,
                             wish.neurons ? wish.neurons->data() : nullptr};
    }
    if (claim_more_wishes) out->n = out->cap + 1;
    return code[function];
  }
  bool claim_more_wishes = false;

  Strategies strategies() {
    static const tierd_predictor_1 predictor = {
        sizeof predictor,
        [](void*) { return 0u; },
        [](void* self, uint32_t site, const tierd_rows_view* rows, tierd_set_out* out) {
          EXPECT_EQ(rows->seq, kSequences);
          const auto& script = *static_cast<Script*>(self);
          if (script.sees) script.sees(site, rows);
          if (script.predict) return script.predict(site, out);
          out->all = 1;
          return 0;
        },
        [](void* self, uint32_t site, const tierd_rows_view*, tierd_ahead_out* out) {
          auto& script = *static_cast<Script*>(self);
          return script.hand_over(script.look_ahead ? script.look_ahead(site) : std::vector<Ahead>(),
                                  "look_ahead", out);
        },
        [](void* self, const tierd_set_view* predicted, const tierd_set_view* truth) {
          auto& script = *static_cast<Script*>(self);
          if (script.observe) script.observe(predicted, truth);
          return script.code["observe"];
        },
        nullptr,
        nullptr,
        nullptr};
    static const tierd_quantizer_1 quantizer = {
        sizeof quantizer,
        [](void* self, const tierd_site_view* site, const tierd_set_view* set, uint8_t* level) {
          EXPECT_EQ(site->site, set->site);
          EXPECT_EQ(site->enc[0].bytes, kSlot);
          const auto& script = *static_cast<Script*>(self);
          return script.choose ? script.choose(set, level) : 0;
        }};
    static const tierd_balancer_1 balancer = {
        sizeof balancer, [](void* self, const tierd_set_view* set, uint32_t, uint8_t* unit) {
          const auto& script = *static_cast<Script*>(self);
          return script.assign ? script.assign(set, unit) : 0;
        }};
    static const tierd_cache_1 cache = {
        sizeof cache,
        [](void*, uint64_t, uint32_t*) { return 0; },
        [](void* self, const tierd_set_view* missing, int priority, uint32_t free_slots, uint8_t* verdict,
           tierd_victims_out* victims) {
          const auto& script = *static_cast<Script*>(self);
          if (script.admit) return script.admit(missing, priority, free_slots, verdict, victims);
          std::fill_n(verdict, missing->n, uint8_t{TIERD_VERDICT_BYPASS});
          return 0;
        },
        [](void* self, uint32_t site, const uint32_t* idx, uint32_t n) {
          return static_cast<Script*>(self)->call("landed", site, idx, n);
        },
        [](void* self, uint32_t site, const uint32_t* idx, uint32_t n, int why) {
          const char* name = why == TIERD_DROPPED_FAILED   ? "failed"
                             : why == TIERD_DROPPED_SHRUNK ? "shrunk"
                                                           : "dropped";
          return static_cast<Script*>(self)->call(name, site, idx, n);
        },
        [](void* self, const tierd_set_view* used) {
          return static_cast<Script*>(self)->call("touch", used->site, used->idx, used->n);
        },
        [](void* self, uint32_t, tierd_ahead_out* out) {
          auto& script = *static_cast<Script*>(self);
          return script.hand_over(script.fill ? script.fill() : std::vector<Ahead>(), "ahead", out);
        },
        [](void* self) { return static_cast<Script*>(self)->code["end_step"]; },
        nullptr,
        [](void* self, uint64_t bytes, uint32_t* slots, tierd_victims_out* victims) {
          auto& script = *static_cast<Script*>(self);
          return script.resize ? script.resize(bytes, slots, victims) : 0;
        },
        [](void* self, uint32_t site, tierd_victims_out* victims) {
          auto& script = *static_cast<Script*>(self);
          victims->n = 0;
          if (script.expire) script.expire(site, victims);
          return script.code["expire"];
        },
        [](void* self, uint32_t rows, uint32_t kept) {
          auto& script = *static_cast<Script*>(self);
          script.calls.push_back("kept " + std::to_string(kept) + " of " + std::to_string(rows));
          return script.code["rows_kept"];
        },
        [](void* self, uint32_t* wanted) {
          *wanted = static_cast<Script*>(self)->resplit;
          return 0;
        }};
    Strategies all;
    const auto install = [&](auto& strategy, const char* kind, const auto& table) {
      strategy.kind = kind;
      strategy.name = "script";
      strategy.self = this;
      strategy.table = table;
    };
    install(all.predictor, "predictor", predictor);
    install(all.quantizer, "quantizer", quantizer);
    install(all.caches.front(), "cache", cache);
    install(all.balancer, "balancer", balancer);
    return all;
  }

 private:
  std::vector<Ahead> lists_;
};

// An `admit` that fills the free slots and lets the rest pass.
inline auto keep_what_fits() {
  return [](const tierd_set_view* missing, int, uint32_t free_slots, uint8_t* verdict, tierd_victims_out*) {
    for (uint32_t i = 0; i < missing->n; ++i) {
      verdict[i] = i < free_slots ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS;
    }
    return 0;
  };
}

struct WorldOptions {
  std::vector<uint32_t> neurons = {4, 4, 4};  // of each site
  std::vector<uint32_t> slots = {0, 0, 0};
  bool tied = false;  // the first site is given and shares the bytes of the last
  uint32_t blocks = 8;
  uint32_t neurons_per_block = 1;
  uint32_t messages = 64;
  uint32_t credits = 64;
  uint32_t attempts = 3;
  bool prefetch = true;
  std::optional<uint64_t> seed = std::nullopt;
  uint32_t units = 1;    // that compute, with slots and blocks each
  uint32_t pieces = 1;   // extents of a neuron
  uint32_t rows = 1;     // of a pass, at most 64
  bool bundles = false;  // axis neuron, which can tell what neurons give
  bool reads_x = false;  // the predictor does
  uint32_t measure_every = 0;
  bool resizes = false;  // the units can: there are addresses for all neurons
};

class ScriptedWorld {
 public:
  explicit ScriptedWorld(const WorldOptions& options,
                         const std::function<Strategies(ScriptedWorld&)>& chosen = {})
      : options_(options),
        sites(make_sites(options)),
        flash(options.credits, pools_),
        computes(options.units, RecordingCompute(options.credits, pools_, sites)),
        dispatcher(pools_, dispatch(options, sites)),
        residencies(options.units, Residency(sites, options.slots)),
        placement(options.units) {
    Scheduler::Options scheduling;
    for (RecordingCompute& unit : computes) {
      UnitMemory& memory = scheduling.units.emplace_back().memory;
      memory.agent = dispatcher.add_agent(unit);
      memory.reserved = options.resizes ? options.neurons : options.slots;
      memory.resizes = options.resizes;
      for (const uint32_t slots : options.slots) memory.arena_bytes += slots * kSlot;
      memory.arena_offset = arena_offsets(sites, memory.reserved);
      uint64_t end = unit.arena_bytes = memory.arena_offset.back();
      memory.staging_offset = end;
      memory.staging_blocks = options.blocks;
      memory.block_bytes = options.neurons_per_block * kSlot;
      end += uint64_t{options.blocks} * memory.block_bytes;
      std::vector<Line>& lines = memory_.emplace_back((end + kSlot) / sizeof(Line));
      pools_.add(memory.agent, std::as_writable_bytes(std::span(lines)));
      std::vector<Line>& activations =
          memory_.emplace_back(2 * options.rows * kStride * sizeof(float) / sizeof(Line));
      pools_.add(memory.agent, std::as_writable_bytes(std::span(activations)));
      unit.order = &order;
    }
    scheduling.flash_agent = dispatcher.add_agent(flash);
    scheduling.prefetch = options.prefetch;
    scheduling.read_attempts = options.attempts;
    scheduling.max_rows = options.rows;
    scheduling.measure_every = options.measure_every;
    scheduling.describe_extent = [](uint32_t extent) {
      return "weights.bin: extent " + std::to_string(extent);
    };
    strategies = chosen ? chosen(*this) : script.strategies();
    strategies.caches.resize(options.units, strategies.caches.front());
    if (options.reads_x) strategies.reads_x.assign(sites.size(), 1);
    scheduler =
        std::make_unique<Scheduler>(dispatcher, sites, strategies, placement, residencies, scheduling);
  }

  // The scripted strategies answer as before a fault.
  void heal() {
    strategies = script.strategies();
    strategies.caches.resize(options_.units, strategies.caches.front());
  }

  // What happens when the kernel has nothing to do. Default: the oldest read ends.
  std::function<void()> idle = [this] {
    if (!flash.open.empty()) flash.finish();
  };

  Status run(Task<Status> task) {
    int idle_turns = 0;
    while (!task.done()) {
      if (dispatcher.turn()) {
        idle_turns = 0;
        if (!dispatcher_is_shuffled() || (++turns_ % 4) != 0) continue;
      }
      idle();
      if (++idle_turns > 1000) {
        ADD_FAILURE() << "the kernel waits for nothing";
        std::abort();  // the coroutine hangs; there is no way on
      }
    }
    return task.take();
  }
  Status pass(SiteId site, uint32_t step, const Neurons& given = {}, bool bypass = false) {
    const ActiveSet set = ActiveSet::of(given);
    Pass pass;
    pass.step = step;
    pass.rows = static_cast<uint16_t>(options_.rows);
    pass.sequences = kSequences;
    pass.bypass_caches = bypass;
    pass.given = &set;
    return run(scheduler->pass(site, pass));
  }
  Status end_step(uint32_t step) { return run(scheduler->end_step(step)); }
  Status drain() { return run(scheduler->drain()); }
  // What the kernel does by itself, without any read ending.
  void settle() {
    for (int i = 0; i < (dispatcher_is_shuffled() ? 200 : 8); ++i) dispatcher.turn();
  }
  // After drain: no message, no lease, no credit, no staging block has been lost.
  void expect_nothing_lost() {
    ASSERT_TRUE(drain().ok());
    settle();
    EXPECT_EQ(dispatcher.in_flight(), 0u);
    EXPECT_TRUE(flash.open.empty());
    for (const Residency& of : residencies) expect_nothing_lost(of);
  }
  void expect_nothing_lost(const Residency& of) const {
    for (SiteId s = 0; s < sites.size(); ++s) {
      if (sites[s].domain != s) continue;
      uint32_t valid = 0;
      for (uint32_t i = 0; i < sites[s].n; ++i) {
        EXPECT_FALSE(of.leased(s, i)) << "site " << s << " neuron " << i;
        EXPECT_FALSE(of.pinned(s, i)) << "site " << s << " neuron " << i;
        valid += of.valid(s, i) ? 1 : 0;
      }
      EXPECT_EQ(of.valid_count(s), valid);
      EXPECT_EQ(of.free_slots(s) + valid, of.max_slots(s));
    }
  }
  // One line of the compute log for a site and step: "B1 2 A3": before, neurons a message, after.
  std::string computed(SiteId site, uint32_t step) const {
    std::string text;
    for (const Computed& c : compute.log) {
      if (c.site != site || c.step != step) continue;
      text += text.empty() ? "" : " ";
      if (c.before) text += "B";
      for (size_t i = 0; i < c.neurons.size(); ++i)
        text += (i == 0 ? "" : ",") + std::to_string(c.neurons[i]);
      if (c.after) text += "A";
    }
    return text;
  }
  // Every pass ran its segments once, in order, and each of `neurons` once.
  void expect_whole(SiteId site, uint32_t step, const Neurons& neurons) const {
    std::vector<Computed> messages;
    std::multiset<uint32_t> seen;
    for (const Computed& c : compute.log) {
      if (c.site != site || c.step != step) continue;
      messages.push_back(c);
      seen.insert(c.neurons.begin(), c.neurons.end());
    }
    ASSERT_FALSE(messages.empty());
    for (size_t i = 0; i < messages.size(); ++i) {
      EXPECT_EQ(messages[i].before, i == 0);
      EXPECT_EQ(messages[i].after, i + 1 == messages.size());
    }
    EXPECT_EQ(seen, std::multiset<uint32_t>(neurons.begin(), neurons.end()));
  }
  // The extents of the reads started so far, one read a bracket: "[3,4][7]".
  std::string reads() const {
    std::string text;
    for (const Read& read : flash.started) {
      text += "[";
      for (size_t i = 0; i < read.extents.size(); ++i) {
        text += (i == 0 ? "" : ",") + std::to_string(read.extents[i]);
      }
      text += "]";
    }
    return text;
  }

 private:
  static constexpr uint32_t kStride = 256;  // floats; neurons of a site at most
  static constexpr uint32_t kInputs = 3;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  static std::vector<Site> make_sites(const WorldOptions& options) {
    std::vector<Site> sites;
    uint32_t extent = 0;
    for (size_t s = 0; s < options.neurons.size(); ++s) {
      Site site;
      site.name = "site " + std::to_string(s);
      site.domain = static_cast<SiteId>(s);
      site.n = options.neurons[s];
      site.slot_bytes = kSlot;
      site.first_extent = extent;
      site.bytes.assign(site.n, kSlot - 96);
      site.n_in = kInputs;
      if (options.reads_x || options.measure_every != 0) site.input = {0, kStride};
      if (options.bundles) {
        site.axis = Axis::neuron;
        site.contribution = {options.rows * kStride * uint32_t{sizeof(float)} / uint32_t{kSpanUnit}, kStride};
      }
      site.pieces = options.pieces;
      if (site.pieces > 1) site.piece_bytes = kSlot / 4;
      extent += site.n * site.pieces;
      sites.push_back(site);
    }
    if (options.tied) {
      sites.front().given = true;
      sites.front().domain = static_cast<SiteId>(sites.size() - 1);
      sites.front().first_extent = sites.back().first_extent;
      EXPECT_EQ(sites.front().n, sites.back().n);
    }
    return sites;
  }
  static Dispatcher::Options dispatch(const WorldOptions& options, const std::vector<Site>& sites) {
    Dispatcher::Options dispatch;
    dispatch.max_messages = options.messages;
    dispatch.max_units = 0;
    if (options.resizes) dispatch.max_units = static_cast<uint32_t>(sites.size());
    for (const Site& site : sites) {
      // What is summed together is read by one message, with all of its pieces.
      const uint32_t together =
          site.axis == Axis::neuron ? std::min(site.n, kPartialNeurons) * site.pieces : 0;
      dispatch.max_units = std::max({dispatch.max_units, site.n, together});
    }
    dispatch.shuffle_seed = options.seed;
    return dispatch;
  }
  bool dispatcher_is_shuffled() const { return options_.seed.has_value(); }
  WorldOptions options_;
  PoolTable pools_;
  std::deque<std::vector<Line>> memory_;
  uint64_t turns_ = 0;

 public:
  Script script;
  const std::vector<Site> sites;
  ManualFlash flash;
  std::deque<RecordingCompute> computes;
  RecordingCompute& compute = computes.front();
  Dispatcher dispatcher;
  std::deque<Residency> residencies;
  Residency& residency = residencies.front();
  Placement placement;
  std::vector<std::string> order;  // what the units did
  Strategies strategies;
  std::unique_ptr<Scheduler> scheduler;
};

}  // namespace tierd
