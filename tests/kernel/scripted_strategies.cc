#include "tests/kernel/scripted_strategies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace tierd {
namespace {

int add(WishList& list, tierd_wish wish, const std::optional<Neurons>& neurons) {
  static constexpr uint32_t kNobody = 0;
  wish.size = sizeof wish;
  if (neurons) {
    wish.n = static_cast<uint32_t>(neurons->size());
    wish.idx = neurons->empty() ? &kNobody : neurons->data();
  }
  return list.add(wish);
}

}  // namespace

int Script::call(const std::string& name, EditionId edition, const uint32_t* idx, uint32_t n) {
  std::string line = name + " " + std::to_string(edition) + ":";
  for (uint32_t i = 0; i < n; ++i) line += (i == 0 ? "" : ",") + std::to_string(idx == nullptr ? i : idx[i]);
  calls.push_back(line);
  return code[name];
}

int Script::hand_over(const std::vector<Ahead>& wishes, WishList& list, const char* what) {
  for (const Ahead& wish : wishes) {
    const float* const scores = wish.scores.empty() ? nullptr : wish.scores.data();
    (void)add(list, {0, wish.memory, wish.site, wish.distance, wish.edition, 0, nullptr, scores},
              wish.neurons);
  }
  return code[what];
}

int Script::hand_over(const std::vector<Wanted>& wanted, const char* what) {
  for (const Wanted& one : wanted)
    (void)add(of_cache, {0, TIERD_NO_MEMORY, TIERD_NO_SITE, 0, one.edition, 0, nullptr, nullptr},
              one.neurons);
  return code[what];
}

int Script::hand_over(const std::vector<WantedThere>& wanted) {
  for (const auto& [memory, one] : wanted)
    (void)add(of_balancer, {0, memory, TIERD_NO_SITE, 0, one.edition, 0, nullptr, nullptr}, one.neurons);
  return code["rebalance"];
}

Strategies Script::strategies() {
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
      [](void* self, uint32_t site, const tierd_rows_view*) {
        auto& script = *static_cast<Script*>(self);
        return script.hand_over(script.look_ahead ? script.look_ahead(site) : std::vector<Ahead>(),
                                script.of_predictor, "look_ahead");
      },
      [](void* self, const tierd_set_view* predicted, const tierd_set_view* truth) {
        auto& script = *static_cast<Script*>(self);
        if (script.observe) script.observe(predicted, truth);
        return script.code["observe"];
      },
      nullptr,
      nullptr,
      nullptr,
      nullptr};
  static const tierd_levels_1 quantizer = {sizeof quantizer,
                                           [](void* self, const tierd_set_view* set, uint8_t* level) {
                                             EXPECT_EQ(set->edition, TIERD_NO_EDITION);
                                             const auto& script = *static_cast<Script*>(self);
                                             return script.choose ? script.choose(set, level) : 0;
                                           },
                                           nullptr};
  static const tierd_balancer_1 balancer = {
      sizeof balancer, [](void*, uint32_t, uint8_t*) { return int{TIERD_E_INTERNAL}; },  // of StrategySet
      [](void* self, const tierd_set_view* set, uint8_t* unit) {
        const auto& script = *static_cast<Script*>(self);
        return script.assign ? script.assign(set, unit) : 0;
      },
      nullptr,
      [](void* self, uint32_t site) {
        auto& script = *static_cast<Script*>(self);
        return script.hand_over(script.rebalance ? script.rebalance(site) : std::vector<WantedThere>());
      }};
  static const tierd_heat_1 heat_table = {
      sizeof heat_table,
      [](void* self, const tierd_fired_view* view) {
        auto& script = *static_cast<Script*>(self);
        if (script.fired) script.fired(view);
        return script.code["fired"];
      },
      [](void* self, uint32_t site, uint8_t* out) { return static_cast<Script*>(self)->heat(site, out); }};
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
      [](void* self, uint32_t edition, const uint32_t* idx, uint32_t n) {
        return static_cast<Script*>(self)->call("landed", edition, idx, n);
      },
      [](void* self, uint32_t edition, const uint32_t* idx, uint32_t n, int why) {
        const char* name = why == TIERD_DROPPED_FAILED   ? "failed"
                           : why == TIERD_DROPPED_SHRUNK ? "shrunk"
                                                         : "dropped";
        return static_cast<Script*>(self)->call(name, edition, idx, n);
      },
      [](void* self, const tierd_set_view* used) {
        return static_cast<Script*>(self)->call("touch", used->edition, used->idx, used->n);
      },
      [](void* self) {
        auto& script = *static_cast<Script*>(self);
        return script.hand_over(script.fill ? script.fill() : std::vector<Wanted>(), "fill");
      },
      [](void* self, uint32_t site) {
        auto& script = *static_cast<Script*>(self);
        return script.hand_over(script.ahead ? script.ahead(site) : std::vector<Ahead>(), script.of_cache,
                                "ahead");
      },
      [](void* self) { return static_cast<Script*>(self)->code["end_step"]; },
      nullptr,
      [](void* self, uint64_t bytes, uint32_t* slots, tierd_victims_out* victims) {
        auto& script = *static_cast<Script*>(self);
        return script.resize ? script.resize(bytes, slots, victims) : 0;
      },
      [](void* self, uint32_t edition, tierd_victims_out* victims) {
        auto& script = *static_cast<Script*>(self);
        victims->n = 0;
        if (script.expire) script.expire(edition, victims);
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
      },
      [](void* self, uint64_t sequence) {
        auto& script = *static_cast<Script*>(self);
        script.calls.push_back("begin " + std::to_string(sequence));
        return script.code["begin_sequence"];
      },
      [](void* self, uint64_t sequence) {
        auto& script = *static_cast<Script*>(self);
        script.calls.push_back("end " + std::to_string(sequence));
        return script.code["end_sequence"];
      },
      [](void* self, uint32_t site) {
        auto& script = *static_cast<Script*>(self);
        return script.hand_over(script.meanwhile ? script.meanwhile(site) : std::vector<Wanted>(), "idle");
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
  if (heat) install(all.heat, "heat", heat_table);
  all.balancer.wishes = &of_balancer;
  all.predictor.wishes = &of_predictor;
  all.caches.front().wishes = &of_cache;
  return all;
}

Admit keep_what_fits() {
  return [](const tierd_set_view* missing, int, uint32_t free_slots, uint8_t* verdict, tierd_victims_out*) {
    for (uint32_t i = 0; i < missing->n; ++i) {
      verdict[i] = i < free_slots ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS;
    }
    return 0;
  };
}

int by_number(const tierd_set_view* set, uint8_t* level) {
  for (uint32_t i = 0; i < set->n; ++i)
    level[i] = static_cast<uint8_t>((set->idx == nullptr ? i : set->idx[i]) % 3);
  return 0;
}

std::function<int(const tierd_set_view*, uint8_t*)> all_in(uint8_t level) {
  return [level](const tierd_set_view* set, uint8_t* out) {
    std::fill_n(out, set->n, level);
    return 0;
  };
}

}  // namespace tierd
