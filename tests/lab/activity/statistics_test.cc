// Drawn activity has the statistics of the closed forms and of the table in section 6 of the study from which
// the profiles are taken (REPRODUCTION.md).
#include <gtest/gtest.h>

#include "tests/lab/activity/measured.h"
#include "tools/lab/activity/closed_forms.h"
#include "tools/lab/activity/sticky_activity.h"

namespace tierd {
namespace {

StickyActivity draw(const ActivityProfile& profile, uint32_t layers, uint32_t neurons, uint64_t seed,
                    uint32_t sequences = 1) {
  auto activity = StickyActivity::create(
      profile, {.neurons = std::vector<uint32_t>(layers, neurons), .seed = seed, .sequences = sequences});
  EXPECT_TRUE(activity.ok());
  return std::move(*activity);
}

ActivityProfile known(const std::string& name) {
  auto profile = read_activity_profile(name);
  EXPECT_TRUE(profile.ok()) << name;
  return *profile;
}

// Returns the share of uses in the second half of a text by the neurons that were the hottest fifth of its
// first half.
double share_of_formerly_hottest(const std::vector<Bits>& tokens, uint32_t neurons) {
  const auto half = tokens.begin() + static_cast<std::ptrdiff_t>(tokens.size() / 2);
  const std::vector<uint32_t> before = uses_of({tokens.begin(), half}, neurons);
  const std::vector<uint32_t> after = uses_of({half, tokens.end()}, neurons);
  std::vector<uint32_t> order(neurons);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t i, uint32_t j) { return before[i] > before[j]; });
  uint64_t hottest = 0;
  for (uint32_t k = 0; k < neurons / 5; ++k) hottest += after[order[k]];
  return static_cast<double>(hottest) /
         static_cast<double>(std::accumulate(after.begin(), after.end(), uint64_t{0}));
}

// P(copy | parent), over the parents in the hottest fifth of a text.
double copies_follow(const StickyActivity& activity, const Text& text) {
  const uint32_t n = activity.neurons(0);
  const std::vector<uint32_t> uses = uses_of(text[0], n);
  std::vector<uint32_t> sorted = uses;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  uint64_t parents = 0, both = 0;
  for (const StickyActivity::Copy& copy : activity.copies(1)) {
    if (uses[copy.parent] <= sorted[n / 5]) continue;
    for (size_t t = 0; t < text[0].size(); ++t) {
      const uint64_t parent = text[0][t][copy.parent / 64] >> copy.parent % 64 & 1;
      parents += parent;
      both += parent & text[1][t][copy.neuron / 64] >> copy.neuron % 64;
    }
  }
  return static_cast<double>(both) / static_cast<double>(parents);
}

// Each seed draws everything anew, so seeds are independent. The tolerance is four standard errors of the
// mean over 12 seeds. The seeds are fixed, so the test always gives the same result. Many blocks are used,
// because neurons of one block share their rates, and the closed forms are for a single neuron.
TEST(DrawnActivity, HasTheStatisticsOfTheClosedForms) {
  constexpr uint32_t kSeeds = 12, kNeurons = 4096, kTokens = 150, kMost = 8;
  for (const std::string& name : known_activity_profiles()) {
    SCOPED_TRACE(name);
    ActivityProfile profile = known(name);
    if (profile.eta > 0) profile.blocks = kNeurons / 4;
    Sampled active, hottest, formerly_hottest, follow;
    std::vector<Sampled> overlap(kMost + 1), used(kMost + 1);
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      StickyActivity activity = draw(profile, 2, kNeurons, seed);
      const Text text = draw_text(activity, 0, kTokens);
      const Counted of(text[1], kNeurons);  // a layer with copies
      active.values.push_back(of.active());
      for (uint32_t k = 1; k <= kMost; ++k) {
        overlap[k].values.push_back(of.overlap(k));
        used[k].values.push_back(of.used_within(k));
      }
      hottest.values.push_back(of.share_of_hottest(0.2));
      formerly_hottest.values.push_back(share_of_formerly_hottest(text[1], kNeurons));
      follow.values.push_back(copies_follow(activity, text));
    }
    const auto expect_near = [](const Sampled& sampled, double expected) {
      EXPECT_NEAR(sampled.mean(), expected, 4 * sampled.standard_error());
    };
    const BetaRates& rates = profile.rates;
    expect_near(active, mean_rate(rates));
    for (uint32_t k = 1; k <= kMost; ++k) {
      SCOPED_TRACE(k);
      expect_near(overlap[k], overlap_after(rates, profile.lambda, k));
      expect_near(used[k], used_within(rates, profile.lambda, k));
    }
    // Choosing the hottest by the counted uses overestimates their share; choosing by other uses
    // underestimates it.
    const double share = share_of_hottest(rates, 0.2);
    EXPECT_GE(hottest.mean(), share - 4 * hottest.standard_error());
    EXPECT_LE(formerly_hottest.mean(), share + 4 * formerly_hottest.standard_error());
    EXPECT_LE(hottest.mean() - formerly_hottest.mean(), 0.07);
    // Parents are chosen by uses, not by rates: half a percentage point.
    EXPECT_NEAR(follow.mean(), copy_follows(rates, profile.shift, 0.2), 4 * follow.standard_error() + 0.005);
  }
}

// A row of the study's table. Its simulation had 4096 neurons, 3 layers, 3 sequences of 300 tokens and 3
// seeds, and gives the scatter over seeds for the activity only.
struct Row {
  const char* profile;
  double active, scatter, overlap[3], used, fresh, hottest;
};
constexpr Row kTable[] = {
    {"llm-in-a-flash", 0.100, 0.001, {0.500, 0.404, 0.404}, 0.240, 0.024, 0.796},
    {"hermes-llama-13b", 0.193, 0.021, {0.903, 0.695, 0.688}, 0.25, 0.012, 0.795},
    {"hermes-falcon-40b", 0.193, 0.021, {0.952, 0.746, 0.692}, 0.23, 0.008, 0.799},
    {"m2cache", 0.200, 0, {0.800, 0.680, 0.679}, 0.31, 0.018, 0.771},
};

// The same simulation with 4 seeds. The tolerance is three standard deviations of the difference of two
// means, and half of the last digit of the study's figure. Where the study has no scatter, that of these
// draws is used. Where blocks share topics the study drew layers of 19.3 +- 2.1 % active neurons, which are
// 18.5 % here, since rates are re-centred as it advises. Higher rates overlap more, for which 0.02 is added.
TEST(DrawnActivity, IsThatOfTheTable) {
  constexpr uint32_t kSeeds = 4, kTheirSeeds = 3, kNeurons = 4096, kLayers = 3, kTexts = 3, kTokens = 300;
  for (const Row& row : kTable) {
    SCOPED_TRACE(row.profile);
    const ActivityProfile profile = known(row.profile);
    Sampled active, used, fresh, hottest, overlap[3];
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      StickyActivity activity = draw(profile, kLayers, kNeurons, seed, kTexts);
      Sampled of_active, of_used, of_fresh, of_hottest, of_overlap[3];
      for (uint32_t s = 0; s < kTexts; ++s) {
        const Text text = draw_text(activity, s, kTokens);
        for (uint32_t l = 0; l < kLayers; ++l) {
          const Counted of(text[l], kNeurons);
          of_active.values.push_back(of.active());
          of_used.values.push_back(of.used_within(5));
          of_fresh.values.push_back(of.used_within(5) - of.used_within(4));
          of_hottest.values.push_back(of.share_of_hottest(0.2));
          for (uint32_t i = 0; i < 3; ++i)
            of_overlap[i].values.push_back(of.overlap(i == 0 ? 1 : i == 1 ? 10 : 25));
        }
      }
      active.values.push_back(of_active.mean());
      used.values.push_back(of_used.mean());
      fresh.values.push_back(of_fresh.mean());
      hottest.values.push_back(of_hottest.mean());
      for (uint32_t i = 0; i < 3; ++i) overlap[i].values.push_back(of_overlap[i].mean());
    }
    const double more = profile.eta > 0 ? 0.02 : 0;
    const auto expect_near = [&](const Sampled& sampled, double theirs, double last_digit, double scatter) {
      const double ours = sampled.deviation();
      const double chance = std::sqrt(ours * ours / kSeeds + scatter * scatter / kTheirSeeds);
      EXPECT_NEAR(sampled.mean(), theirs, 3 * chance + last_digit / 2 + more);
    };
    const auto expect_as_scattered = [&](const Sampled& sampled, double theirs, double last_digit) {
      expect_near(sampled, theirs, last_digit, sampled.deviation());
    };
    expect_near(active, row.active, 0.001, row.scatter);
    for (uint32_t i = 0; i < 3; ++i) expect_as_scattered(overlap[i], row.overlap[i], 0.001);
    expect_as_scattered(used, row.used, row.used == 0.240 ? 0.001 : 0.01);
    expect_as_scattered(fresh, row.fresh, 0.001);
    expect_as_scattered(hottest, row.hottest, 0.001);
  }
}

// "LFU 50 % cache: 18.8 % loads" of ActiveFlow's row: the half used most so far is resident, and a token
// loads this share of the neurons. With known rates, the least possible by the closed form is 18.5 %.
TEST(DrawnActivity, LoadsOfACacheByFrequency) {
  constexpr uint32_t kNeurons = 2048, kTokens = 300, kWarm = 100;
  const ActivityProfile profile = known("activeflow");
  Sampled loads;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    StickyActivity activity = draw(profile, 1, kNeurons, seed);
    const Text text = draw_text(activity, 0, kTokens);
    std::vector<uint32_t> uses(kNeurons, 0);
    uint64_t loaded = 0;
    for (uint32_t t = 0; t < kTokens; ++t) {
      std::vector<uint32_t> order(kNeurons);
      std::iota(order.begin(), order.end(), 0u);
      std::stable_sort(order.begin(), order.end(), [&](uint32_t i, uint32_t j) { return uses[i] > uses[j]; });
      std::vector<bool> there(kNeurons, false);
      for (uint32_t k = 0; k < kNeurons / 2; ++k) there[order[k]] = true;
      for (const uint32_t neuron : list_active(text[0][t])) {
        loaded += t >= kWarm && !there[neuron] ? 1 : 0;
        ++uses[neuron];
      }
    }
    loads.values.push_back(static_cast<double>(loaded) / kNeurons / (kTokens - kWarm));
  }
  const double ideal = mean_rate(profile.rates) * (1 - share_of_hottest(profile.rates, 0.5));
  EXPECT_GE(loads.mean(), ideal - 4 * loads.standard_error());
  EXPECT_NEAR(loads.mean(), 0.188, 4 * loads.standard_error() + 0.0005);
}

// Another text has another context: a share chi of the neurons has rates drawn anew. Events differ too, so
// the texts share nothing but rates.
TEST(DrawnActivity, TextsShareTheirRatesButForTheContext) {
  constexpr uint32_t kNeurons = 4096, kTokens = 40;
  for (const char* name : {"llm-in-a-flash", "m2cache"}) {
    SCOPED_TRACE(name);
    const ActivityProfile profile = known(name);
    Sampled shared;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      StickyActivity activity = draw(profile, 1, kNeurons, seed, 2);
      const Text one = draw_text(activity, 0, kTokens), other = draw_text(activity, 1, kTokens);
      double both = 0, all = 0;
      for (uint32_t t = 0; t < kTokens; ++t) {
        both += count_shared(one[0][t], other[0][t]);
        all += count_active(one[0][t]);
      }
      shared.values.push_back(both / all);
    }
    // If either text has drawn a neuron's rate anew, the two rates are independent: E[p]^2 replaces E[p^2].
    const double same = (1 - profile.chi) * (1 - profile.chi);
    const double expected = same * lasting_overlap(profile.rates) + (1 - same) * mean_rate(profile.rates);
    EXPECT_NEAR(shared.mean(), expected, 4 * shared.standard_error());
  }
}

}  // namespace
}  // namespace tierd
