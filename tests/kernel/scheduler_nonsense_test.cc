// An invalid answer of a strategy gives one line that names the strategy, and the kernel continues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kernel/pass/scheduler.h"
#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

using testing::HasSubstr;

struct Nonsense {
  const char* name;
  void (*play)(ScriptedWorld&);
  const char* line;  // part of the error line; "" where the answer is valid
};

// Site 1 has 4 neurons and 2 slots that hold neurons 0 and 1; site 2 has one free slot. The fault occurs in
// the pass of site 1 in step 1.
const std::vector<Nonsense>& nonsense() {
  static const std::vector<Nonsense> all = {
      {"predict code", [](ScriptedWorld& w) { w.script.predict = [](SiteId, tierd_set_out*) { return -4; }; },
       "predictor 'script': predict: returned -4"},
      {"predict too many",
       [](ScriptedWorld& w) {
         w.script.predict = [](SiteId, tierd_set_out* out) {
           out->n = 5;
           return 0;
         };
       },
       "predictor 'script': predict: 5 neurons, expected at most 4"},
      {"predict out of range",
       [](ScriptedWorld& w) {
         w.script.predict = [](SiteId, tierd_set_out* out) {
           out->idx[0] = 1, out->idx[1] = 4, out->n = 2;
           return 0;
         };
       },
       "predict: neuron 4 at place 1: expected ascending numbers below 4"},
      {"predict descending",
       [](ScriptedWorld& w) {
         w.script.predict = [](SiteId, tierd_set_out* out) {
           out->idx[0] = 2, out->idx[1] = 1, out->n = 2;
           return 0;
         };
       },
       "predict: neuron 1 at place 1"},
      {"predict twice",
       [](ScriptedWorld& w) {
         w.script.predict = [](SiteId, tierd_set_out* out) {
           out->idx[0] = 2, out->idx[1] = 2, out->n = 2;
           return 0;
         };
       },
       "predict: neuron 2 at place 1"},
      {"admit code",
       [](ScriptedWorld& w) {
         w.script.admit = [](const tierd_set_view*, int, uint32_t, uint8_t*, tierd_victims_out*) {
           return -4;
         };
       },
       "cache 'script': admit: returned -4"},
      {"admit too many victims",
       [](ScriptedWorld& w) {
         w.script.admit = [](const tierd_set_view*, int, uint32_t, uint8_t*, tierd_victims_out* victims) {
           victims->n = 77;
           return 0;
         };
       },
       "cache 'script': admit: 77 victims, expected at most 2"},
      {"admit pinned victim",
       [](ScriptedWorld& w) {
         w.script.admit = [](const tierd_set_view*, int, uint32_t, uint8_t*, tierd_victims_out* victims) {
           victims->item[victims->n++] = {1, 0};
           return 0;
         };
       },
       "cache 'script': admit: victim 0 of edition 1 cannot be evicted"},
      {"admit victim that is not here",
       [](ScriptedWorld& w) {
         w.script.admit = [](const tierd_set_view*, int, uint32_t, uint8_t*, tierd_victims_out* victims) {
           victims->item[victims->n++] = {1, 3};
           return 0;
         };
       },
       "victim 3 of edition 1 cannot be evicted"},
      {"admit victim of nowhere",
       [](ScriptedWorld& w) {
         w.script.admit = [](const tierd_set_view*, int, uint32_t, uint8_t*, tierd_victims_out* victims) {
           victims->item[victims->n++] = {4711, 4000000000u};
           return 0;
         };
       },
       "victim 4000000000 of edition 4711 cannot be evicted"},
      {"admit keeps without slots",
       [](ScriptedWorld& w) {
         w.script.admit = [](const tierd_set_view* missing, int, uint32_t, uint8_t* verdict,
                             tierd_victims_out*) {
           std::fill_n(verdict, missing->n, uint8_t{TIERD_VERDICT_KEEP});
           return 0;
         };
       },
       "keeps more neurons than there are free slots and victims"},
      {"admit verdict",
       [](ScriptedWorld& w) {
         w.script.admit = [](const tierd_set_view* missing, int, uint32_t, uint8_t* verdict,
                             tierd_victims_out*) {
           verdict[missing->n - 1] = 9;
           return 0;
         };
       },
       "admit: verdict 9"},
      {"admit refuses a demand",
       [](ScriptedWorld& w) {
         w.script.admit = [](const tierd_set_view* missing, int, uint32_t, uint8_t* verdict,
                             tierd_victims_out*) {
           std::fill_n(verdict, missing->n, uint8_t{TIERD_VERDICT_REFUSE});
           return 0;
         };
       },
       "refused a neuron of a demand"},
      {"look-ahead code", [](ScriptedWorld& w) { w.script.code["look_ahead"] = -3; },
       "predictor 'script': look_ahead: returned -3"},
      {"look-ahead to no memory",
       [](ScriptedWorld& w) {
         w.script.look_ahead = [](SiteId) { return std::vector<Ahead>{{2, 1, std::nullopt, 2}}; };
       },
       "look_ahead: memory 2, expected 1 to 1"},
      {"look-ahead to the store",
       [](ScriptedWorld& w) {
         w.script.look_ahead = [](SiteId) { return std::vector<Ahead>{{2, 1, std::nullopt, 0}}; };
       },
       "look_ahead: memory 0, expected 1 to 1"},
      {"look-ahead to another's edition",
       [](ScriptedWorld& w) {
         w.script.look_ahead = [](SiteId) {
           return std::vector<Ahead>{{2, 1, std::nullopt, TIERD_NO_MEMORY, 0}};
         };
       },
       "look_ahead: site 2 has no edition 0"},
      {"look-ahead to more than there are",
       [](ScriptedWorld& w) {
         w.script.look_ahead = [](SiteId) { return std::vector<Ahead>{{2, 1, Neurons{0, 1, 2, 3, 4}}}; };
       },
       "look_ahead: 5 neurons, expected at most 4"},
      {"a cache's code", [](ScriptedWorld& w) { w.script.code["ahead"] = -4; },
       "cache 'script': ahead: returned -4"},
      {"a cache's distance",
       [](ScriptedWorld& w) { w.script.ahead = [](SiteId) {
                                return std::vector<Ahead>{{2, 3}};
                              }; },
       "ahead: site 2 is not the one 3 sites after site 1"},
      {"look-ahead wrong distance",
       [](ScriptedWorld& w) { w.script.look_ahead = [](SiteId) {
                                return std::vector<Ahead>{{2, 2}};
                              }; },
       "look_ahead: site 2 is not the one 2 sites after site 1"},
      {"look-ahead wrong site",
       [](ScriptedWorld& w) { w.script.look_ahead = [](SiteId) {
                                return std::vector<Ahead>{{9, 1}};
                              }; },
       "look_ahead: site 9 is not the one"},
      {"look-ahead no distance",
       [](ScriptedWorld& w) { w.script.look_ahead = [](SiteId) {
                                return std::vector<Ahead>{{1, 0}};
                              }; },
       "look_ahead: site 1 is not the one 0 sites after site 1"},
      {"look-ahead far away",
       [](ScriptedWorld& w) {
         w.script.look_ahead = [](SiteId) { return std::vector<Ahead>{{2, 4294967293u}}; };
       },
       ""},  // 3 divides it: a valid place 1.4e9 steps ahead, not read yet
      {"look-ahead out of range",
       [](ScriptedWorld& w) {
         w.script.look_ahead = [](SiteId) { return std::vector<Ahead>{{2, 1, Neurons{1, 4}}}; };
       },
       "look_ahead: neuron 4 at place 1"},
      {"look-ahead descending",
       [](ScriptedWorld& w) {
         w.script.look_ahead = [](SiteId) { return std::vector<Ahead>{{2, 1, Neurons{3, 1}}}; };
       },
       "look_ahead: neuron 1 at place 1"},
      {"look-ahead the same twice",
       [](ScriptedWorld& w) {
         w.script.look_ahead = [](SiteId) { return std::vector<Ahead>{{2, 1, Neurons{3, 3}}}; };
         w.script.admit = keep_what_fits();
       },
       "look_ahead: neuron 3 at place 1"},
      {"look-ahead too many neurons",
       [](ScriptedWorld& w) {
         w.script.look_ahead = [](SiteId) { return std::vector<Ahead>{{2, 1, Neurons{0, 1, 2, 3, 4}}}; };
       },
       "look_ahead: 5 neurons, expected at most 4"},
      {"look-ahead that the cache answers badly",
       [](ScriptedWorld& w) {
         w.script.look_ahead = [](SiteId) { return std::vector<Ahead>{{2, 1}}; };
         w.script.admit = [](const tierd_set_view* missing, int priority, uint32_t, uint8_t* verdict,
                             tierd_victims_out*) {
           std::fill_n(verdict, missing->n, uint8_t{TIERD_VERDICT_BYPASS});
           if (priority == TIERD_PRIORITY_PREFETCH) {
             std::fill_n(verdict, missing->n, uint8_t{TIERD_VERDICT_KEEP});
           }
           return 0;
         };
       },
       "keeps more neurons than there are free slots and victims"},
      {"observe code", [](ScriptedWorld& w) { w.script.code["observe"] = -1; },
       "predictor 'script': observe: returned -1"},
      {"touch code", [](ScriptedWorld& w) { w.script.code["touch"] = -1; },
       "cache 'script': touch: returned -1"},
      {"landed code",
       [](ScriptedWorld& w) {
         w.script.code["landed"] = -1;
         w.script.look_ahead = [](SiteId) { return std::vector<Ahead>{{2, 1, Neurons{0}}}; };
         w.script.admit = keep_what_fits();
       },
       "cache 'script': landed: returned -1"},
      {"dropped code",
       [](ScriptedWorld& w) {
         w.script.code["dropped"] = -1;
         w.script.predict = [](SiteId, tierd_set_out* out) {
           out->idx[0] = 2, out->n = 1;
           return 0;
         };
         w.script.admit = [](const tierd_set_view*, int, uint32_t, uint8_t*, tierd_victims_out* victims) {
           victims->item[victims->n++] = {1, 0};
           return 0;
         };
       },
       "cache 'script': dropped: returned -1"},
      {"end of step code", [](ScriptedWorld& w) { w.script.code["end_step"] = -1; },
       "cache 'script': end_step: returned -1"},
  };
  return all;
}

TEST(SchedulerNonsense, IsOneLineAndTheKernelLives) {
  for (const Nonsense& n : nonsense()) {
    SCOPED_TRACE(n.name);
    ScriptedWorld world({.slots = {0, 2, 1}});
    world.script.fill = [] { return std::vector<Wanted>{{1, Neurons{0, 1}}}; };
    ASSERT_TRUE(world.run(world.scheduler->fill({})).ok());
    n.play(world);
    Status status = world.pass(1, 1);
    world.settle();
    while (!world.flash.open.empty()) world.flash.finish();
    world.settle();
    if (status.ok()) status = world.end_step(1);
    if (*n.line == '\0') {
      EXPECT_TRUE(status.ok());
    } else {
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.code(), Code::plugin_fault);
      EXPECT_THAT(status.error().line(), HasSubstr(n.line));
      EXPECT_EQ(status.error().line().find('\n'), std::string::npos);
    }
    // The strategy is not called again until it is replaced.
    if (!status.ok()) {
      EXPECT_TRUE(world.scheduler->quarantined());
      const Status again = world.pass(0, 2);
      ASSERT_FALSE(again.ok());
      EXPECT_EQ(again.code(), Code::plugin_fault);
      ASSERT_TRUE(world.drain().ok());
    }
    world.heal();
    world.script.predict = nullptr;
    world.script.look_ahead = nullptr;
    world.script.admit = nullptr;
    world.script.code.clear();
    world.script.ahead = nullptr;
    for (SiteId site = 0; site < 3; ++site) {
      const Status after = world.pass(site, 2);
      ASSERT_TRUE(after.ok()) << after.error().line();
      world.expect_whole(site, 2, {0, 1, 2, 3});
    }
    world.expect_nothing_lost();
  }
}

// Balancer and quantizer are called where there is a choice.
TEST(SchedulerNonsense, OfAChoiceIsOneLineToo) {
  const std::vector<Nonsense> all = {
      {"assign code",
       [](ScriptedWorld& w) { w.script.assign = [](const tierd_set_view*, uint8_t*) { return -1; }; },
       "balancer 'script': assign: returned -1"},
      {"assign unit",
       [](ScriptedWorld& w) {
         w.script.assign = [](const tierd_set_view* set, uint8_t* unit) {
           unit[set->n - 1] = 3;
           return 0;
         };
       },
       "balancer 'script': assign: unit 3, expected a number below 2"},
      {"choose code",
       [](ScriptedWorld& w) { w.script.choose = [](const tierd_set_view*, uint8_t*) { return -3; }; },
       "quantizer 'script': choose: returned -3"},
      {"choose level",
       [](ScriptedWorld& w) {
         w.script.choose = [](const tierd_set_view*, uint8_t* level) {
           level[0] = 200;
           return 0;
         };
       },
       "quantizer 'script': choose: edition 200, expected a number below 2"},
  };
  for (const Nonsense& n : all) {
    SCOPED_TRACE(n.name);
    ScriptedWorld world({.slots = std::vector<uint32_t>(6, 0), .units = 2, .editions = 2});
    n.play(world);
    for (const uint32_t step : {1u, 2u}) {
      const Status status = world.pass(1, step);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.code(), Code::plugin_fault);
      EXPECT_THAT(status.error().line(), HasSubstr(n.line));
      EXPECT_TRUE(world.scheduler->quarantined());
    }
    ASSERT_TRUE(world.drain().ok());
    world.heal();
    world.script.assign = nullptr;
    world.script.choose = nullptr;
    ASSERT_TRUE(world.pass(1, 3).ok());
    world.expect_whole(1, 3, {0, 1, 2, 3});
    world.expect_nothing_lost();
  }
}

TEST(SchedulerNonsense, AtTheStartIsOneLine) {
  struct Case {
    std::vector<Wanted> wanted;
    const char* line;
  };
  const std::vector<Case> cases = {
      {{{9}}, "fill: edition 9, expected a number below 2"},
      {{{2}}, "fill: edition 2, expected a number below 2"},  // a site has this number, no edition
      {{{0}}, "fill: lists more neurons of edition 0 than it has slots"},
      {{{0, Neurons{1, 7}}}, "fill: neuron 7 at place 1"},
      {{{0, Neurons{1, 1}}}, "fill: neuron 1 at place 1"},
      {{{1}, {0, Neurons{2, 1}}}, "fill: neuron 1 at place 1"},
      {{{0, Neurons{0, 1, 2, 3, 3}}}, "fill: 5 neurons, expected at most 4"},
  };
  for (const Case& c : cases) {
    ScriptedWorld world({.slots = {2, 4}, .tied = true});
    world.script.fill = [&] { return c.wanted; };
    const Status status = world.run(world.scheduler->fill({}));
    EXPECT_EQ(status.code(), Code::plugin_fault);
    EXPECT_THAT(status.error().line(), HasSubstr(c.line));
    EXPECT_THAT(status.error().line(), HasSubstr("cache 'script'"));
    world.expect_nothing_lost();
    EXPECT_TRUE(world.flash.started.empty());
  }
  ScriptedWorld world({.slots = {0, 2, 4}});
  world.script.code["fill"] = -4;
  EXPECT_THAT(world.run(world.scheduler->fill({})).error().line(), HasSubstr("fill: returned -4"));
  world.expect_nothing_lost();
}

}  // namespace
}  // namespace tierd
