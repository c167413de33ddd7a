#include "tools/lab/activity/activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "core/watch/trace/recorded_pass.h"

namespace tierd {
namespace {

constexpr uint32_t kFriendlyWindow = 4;    // the paper's, for the cost of friends
constexpr uint64_t kMostPairs = 1u << 30;  // pairs of a site's neurons that fire together: about a second

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

uint64_t shared_by(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  std::vector<uint32_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both.size();
}

uint64_t pairs_of(const SiteActivity& site) {
  uint64_t pairs = 0;
  for (size_t t = 0; t < site.tokens.size(); ++t) {
    const uint64_t size = site.tokens[t].size();
    pairs += size * size;
  }
  return pairs;
}

// Returns for each neuron the one that fires most often with it; itself if it never fires with another.
std::vector<uint32_t> closest_friends(const SiteActivity& site) {
  const uint32_t n = site.neurons;
  std::vector<std::vector<uint32_t>> fired(n);  // the tokens in which each fires
  for (uint32_t t = 0; t < site.tokens.size(); ++t) {
    for (const uint32_t i : site.tokens[t]) fired[i].push_back(t);
  }
  std::vector<uint32_t> friends(n);
  std::vector<uint32_t> together(n, 0);
  for (uint32_t i = 0; i < n; ++i) {
    for (const uint32_t t : fired[i]) {
      for (const uint32_t j : site.tokens[t]) ++together[j];
    }
    together[i] = 0;
    const auto closest =
        static_cast<uint32_t>(std::max_element(together.begin(), together.end()) - together.begin());
    friends[i] = together[closest] == 0 ? i : closest;
    for (const uint32_t t : fired[i]) {
      for (const uint32_t j : site.tokens[t]) together[j] = 0;
    }
  }
  return friends;
}

using Sites = std::vector<SiteActivityFigures>;

double mean_of(const Sites& sites, double SiteActivityFigures::*figure) {
  double sum = 0;
  for (const SiteActivityFigures& site : sites) sum += site.*figure;
  return sum / static_cast<double>(sites.size());
}

// Returns nothing if a site lacks the figure.
template <class Number>
std::optional<double> mean_of(const Sites& sites, std::optional<Number> SiteActivityFigures::*figure) {
  double sum = 0;
  for (const SiteActivityFigures& site : sites) {
    if (!(site.*figure)) return std::nullopt;
    sum += *(site.*figure);
  }
  return sum / static_cast<double>(sites.size());
}

// Returns the means window by window.
std::vector<double> mean_of(const Sites& sites, std::vector<double> SiteActivityFigures::*figure) {
  std::vector<double> means((sites.front().*figure).size(), 0);
  for (const SiteActivityFigures& site : sites) {
    for (size_t k = 0; k < means.size(); ++k)
      means[k] += (site.*figure)[k] / static_cast<double>(sites.size());
  }
  return means;
}

MeanActivityFigures means_of(const Sites& sites) {
  using F = SiteActivityFigures;
  return {.active = mean_of(sites, &F::active),
          .hot_share = mean_of(sites, &F::hot_share),
          .overlap = mean_of(sites, &F::overlap),
          .fresh = mean_of(sites, &F::fresh),
          .held = mean_of(sites, &F::held),
          .unrelated_overlap = mean_of(sites, &F::unrelated_overlap),
          .closest_friend_cost = mean_of(sites, &F::closest_friend_cost),
          .friends_here = mean_of(sites, &F::friends_here),
          .friends_wanted = mean_of(sites, &F::friends_wanted),
          .friends_used = mean_of(sites, &F::friends_used),
          .with_a_friend = mean_of(sites, &F::with_a_friend),
          .closest_friends = mean_of(sites, &F::closest_friends)};
}

SiteActivityFigures site_figures(const SiteActivity& site, const ActivityOptions& options) {
  WindowShares shares = window_shares(site, options.most_k, options.skip);
  SiteActivityFigures figures;
  figures.site = site.name;
  figures.neurons = site.neurons;
  figures.tokens = site.tokens.size();
  figures.active = shares.active;
  figures.hot_share = hot_share(site, options.skip);
  figures.overlap = overlap_with_previous(site, options.skip);
  figures.fresh = std::move(shares.fresh);
  figures.held = std::move(shares.held);
  return figures;
}

void add_friends(const FriendBundling& bundling, SiteActivityFigures& figures) {
  figures.closest_friend_cost = bundling.cost;
  figures.with_a_friend = bundling.with_one;
  figures.closest_friends = bundling.friends;
  figures.friends_here = bundling.here;
  figures.friends_wanted = bundling.wanted;
  figures.friends_used = bundling.used;
}

std::string percent(double share) {
  return fmt::format("{:>8.2f}", 100 * share);
}

std::string windows_text(const MeanActivityFigures& mean) {
  std::string text = fmt::format("\n  {:<22}", "window of k tokens");
  for (size_t k = 1; k <= mean.fresh.size(); ++k) text += fmt::format("{:>8}", k);
  text += fmt::format("\n  {:<22}", "new, read for a token");
  for (const double share : mean.fresh) text += percent(share);
  text += fmt::format("\n  {:<22}", "held");
  for (const double share : mean.held) text += percent(share);
  return text;
}

}  // namespace

Result<std::vector<SiteActivity>> read_activity(TraceReader& trace, bool measured) {
  const SiteTable& sites = trace.header().sites;
  std::vector<SiteActivity> all(sites.size());
  uint16_t rows = 0;
  bool prefill = false;
  for (; const Event* event = trace.peek(); trace.next()) {
    if (const auto* pass = event->as<PassBegins>()) {
      rows = pass->rows;
      prefill = pass->bypass_caches;
    }
    if (rows != 1 || prefill) continue;
    if (const auto* active = event->as<Activated>(); active != nullptr && !measured && active->neurons) {
      TIERD_TRY(check_listed(*active, trace));
      all[active->site].tokens.push_back(*active->neurons);
    } else if (const auto* truth = event->as<Measured>(); truth != nullptr && measured) {
      TIERD_TRY(check_listed(*truth, trace));
      all[truth->site].tokens.push_back(truth->neurons);
    }
  }
  TIERD_TRY(trace.status());
  std::vector<SiteActivity> some;
  for (SiteId s = 0; s < sites.size(); ++s) {
    if (all[s].tokens.empty()) continue;
    all[s].name = sites[s].name;
    all[s].neurons = sites[s].n;
    some.push_back(std::move(all[s]));
  }
  if (some.empty()) {
    return Error{Code::invalid_argument, trace.path(),
                 measured ? "no decode step was measured: run with scheduler.measure_every"
                          : "every decode step used all neurons, so there is no activity to show"};
  }
  return some;
}

WindowShares window_shares(const SiteActivity& site, uint32_t most_k, uint32_t skip) {
  constexpr uint64_t kNever = UINT64_MAX;
  std::vector<uint64_t> last(site.neurons, kNever);
  std::vector<uint64_t> last_here(site.tokens.size(), 0);  // [tokens] neurons whose last use is that token
  std::vector<uint64_t> fresh(most_k, 0), held(most_k, 0);
  uint64_t active = 0;
  for (uint64_t t = 0; t < site.tokens.size(); ++t) {
    const bool counted = t >= skip;
    const std::vector<uint32_t> set = site.tokens[t];
    for (const uint32_t neuron : set) {
      const uint64_t age = last[neuron] == kNever ? kNever : t - last[neuron];
      for (uint64_t k = 1; counted && k <= most_k && age > k; ++k) ++fresh[k - 1];
      if (age != kNever) --last_here[last[neuron]];
      ++last_here[t];
      last[neuron] = t;
    }
    if (!counted) continue;
    active += set.size();
    uint64_t union_of = last_here[t];
    for (uint64_t k = 1; k <= most_k; ++k) {
      if (k <= t) union_of += last_here[t - k];
      held[k - 1] += union_of;
    }
  }
  const uint64_t whole = site.tokens.size() > skip ? (site.tokens.size() - skip) * site.neurons : 0;
  WindowShares shares;
  shares.active = ratio(active, whole);
  for (uint32_t k = 0; k < most_k; ++k) {
    shares.fresh.push_back(ratio(fresh[k], whole));
    shares.held.push_back(ratio(held[k], whole));
  }
  return shares;
}

double hot_share(const SiteActivity& site, uint32_t skip) {
  std::vector<uint64_t> uses(site.neurons, 0);
  for (size_t t = skip; t < site.tokens.size(); ++t) {
    for (const uint32_t neuron : site.tokens[t]) ++uses[neuron];
  }
  const uint64_t all = std::accumulate(uses.begin(), uses.end(), uint64_t{0});
  std::sort(uses.begin(), uses.end(), std::greater<>());
  return ratio(std::accumulate(uses.begin(), uses.begin() + site.neurons / 5, uint64_t{0}), all);
}

double overlap_with_previous(const SiteActivity& site, uint32_t skip) {
  uint64_t shared = 0, all = 0;
  for (size_t t = std::max(skip, 1u); t < site.tokens.size(); ++t) {
    const std::vector<uint32_t> set = site.tokens[t];
    shared += shared_by(set, site.tokens[t - 1]);
    all += set.size();
  }
  return ratio(shared, all);
}

double overlap_with(const SiteActivity& site, const SiteActivity& unrelated, uint32_t skip) {
  uint64_t shared = 0, all = 0;
  for (size_t t = skip; t < std::min(site.tokens.size(), unrelated.tokens.size()); ++t) {
    const std::vector<uint32_t> set = site.tokens[t];
    shared += shared_by(set, unrelated.tokens[t]);
    all += set.size();
  }
  return ratio(shared, all);
}

FriendBundling friend_bundling(const SiteActivity& site, uint32_t k, uint32_t skip) {
  const std::vector<uint32_t> friends = closest_friends(site);
  constexpr uint64_t kNever = UINT64_MAX;
  std::vector<uint64_t> last(site.neurons, kNever);    // the last token that used it
  std::vector<uint64_t> copied(site.neurons, kNever);  // the token that loaded its copy, if the copy is still
                                                       // resident
  uint64_t alone = 0, with_friends = 0, copies = 0, here = 0, wanted = 0, used = 0;
  for (uint64_t t = 0; t < site.tokens.size(); ++t) {
    const std::vector<uint32_t> set = site.tokens[t];
    std::vector<uint8_t> came(site.neurons, 0);
    const auto in_window = [&](uint64_t token) { return token != kNever && t - token <= k; };
    for (const uint32_t neuron : set) {
      if (in_window(last[neuron]) || t < skip) continue;
      ++alone;
      if (came[neuron] != 0) continue;  // loaded as a friend of another neuron of this token
      const uint32_t other = friends[neuron];
      with_friends += 2;
      came[neuron] = came[other] = 1;
      if (other == neuron) continue;  // it has no friend
      ++copies;
      if (in_window(last[other]) || in_window(copied[other])) {
        ++here;
        continue;
      }
      copied[other] = t;
      if (std::binary_search(set.begin(), set.end(), other)) ++wanted;
    }
    // After the token, because its neurons are in the window of the tokens that follow.
    for (const uint32_t neuron : set) {
      const uint64_t token = std::exchange(copied[neuron], kNever);
      if (token != t && in_window(token)) ++used;
      last[neuron] = t;
    }
  }
  FriendBundling bundling;
  bundling.cost = ratio(with_friends, alone);
  bundling.here = ratio(here, copies);
  bundling.wanted = ratio(wanted, copies);
  bundling.used = ratio(used, copies);
  std::set<uint32_t> different;
  for (uint32_t i = 0; i < site.neurons; ++i) {
    if (friends[i] == i) continue;
    ++bundling.with_one;
    different.insert(friends[i]);
  }
  bundling.friends = static_cast<uint32_t>(different.size());
  return bundling;
}

ActivityFigures activity_figures(const std::vector<SiteActivity>& sites,
                                 const std::vector<SiteActivity>& unrelated, const ActivityOptions& options) {
  ActivityFigures activity{.skipped = options.skip, .mean = {}, .sites = {}};
  bool friends = true;
  for (size_t s = 0; s < sites.size(); ++s) {
    const SiteActivity& site = sites[s];
    SiteActivityFigures& figures = activity.sites.emplace_back(site_figures(site, options));
    if (s < unrelated.size()) figures.unrelated_overlap = overlap_with(site, unrelated[s], options.skip);
    friends = friends && pairs_of(site) <= kMostPairs;
    if (friends) add_friends(friend_bundling(site, kFriendlyWindow, options.skip), figures);
  }
  activity.mean = means_of(activity.sites);
  return activity;
}

std::string activity_text(const ActivityFigures& activity) {
  const MeanActivityFigures& mean = activity.mean;
  const SiteActivityFigures& first = activity.sites.front();
  std::string text =
      fmt::format("{} sites of {} neurons, {} decoded tokens, the first {} left out; % of the neurons\n",
                  activity.sites.size(), first.neurons, first.tokens, activity.skipped);
  text += windows_text(mean);
  text += fmt::format("\n\n  active {} %; the hottest fifth has {} % of the uses\n", percent(mean.active),
                      percent(mean.hot_share));
  text += fmt::format("  shared with the token before {} %", percent(mean.overlap));
  if (mean.unrelated_overlap)
    text += fmt::format(", with another text {} %", percent(*mean.unrelated_overlap));
  if (mean.closest_friend_cost) {
    text += fmt::format(
        "\n  bundled with its closest friend, a new neuron takes {:.2f} times the bytes; {:.0f} "
        "neurons of a site have {:.0f} different ones; of their copies {:.1f} % are here already, {:.1f} % "
        "wanted by the same token, {:.1f} % used later, before they leave",
        *mean.closest_friend_cost, *mean.with_a_friend, *mean.closest_friends, 100 * *mean.friends_here,
        100 * *mean.friends_wanted, 100 * *mean.friends_used);
  }
  const size_t k = std::min<size_t>(kFriendlyWindow, mean.fresh.size()) - 1;
  text += fmt::format("\n\n  {:<18}{:>10}{:>10}{:>10}{:>10}\n", fmt::format("k = {}", k + 1), "active", "new",
                      "held", "hot");
  for (const SiteActivityFigures& site : activity.sites) {
    text += fmt::format("  {:<18}  {}  {}  {}  {}\n", site.site, percent(site.active), percent(site.fresh[k]),
                        percent(site.held[k]), percent(site.hot_share));
  }
  return text;
}

}  // namespace tierd
