// Compares the active neurons of one token with those of the tokens before: what a window over the last
// tokens would hold and read, independent of the run's cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/figure.h"
#include "core/watch/trace/reader.h"
#include "tools/lab/activity/packed_lists.h"

namespace tierd {

// The neurons of one site that each decoded token used, ascending.
struct SiteActivity {
  std::string name;
  uint32_t neurons = 0;
  PackedLists tokens;
};

// Returns the sites that decode steps used in part. `measured`: the neurons that fired, in steps that were
// measured. Errors: those of the trace; invalid_argument if there is no such site.
Result<std::vector<SiteActivity>> read_activity(TraceReader& trace, bool measured);

// Means over the tokens after the first `skip`, as shares of the site's neurons.
struct WindowShares {
  double active = 0;          // used by a token
  std::vector<double> fresh;  // [k - 1] and by none of the k tokens before it: what a window of k reads
  std::vector<double> held;   // [k - 1] used by it or by one of the k tokens before it
};
WindowShares window_shares(const SiteActivity& site, uint32_t most_k, uint32_t skip);

// Returns the share of all uses that the most used fifth of the neurons has.
double hot_share(const SiteActivity& site, uint32_t skip);

// Return the share of a token's set that is also in another token's set: that of the previous token, or of
// the token at the same position of an unrelated text.
double overlap_with_previous(const SiteActivity& site, uint32_t skip);
double overlap_with(const SiteActivity& site, const SiteActivity& unrelated, uint32_t skip);

// Bundles each neuron with the one that fires with it most often (LLM in a flash, section 3.2.2: it fails,
// since the most active neurons are the friends of almost all). Friends are learned from the same tokens. A
// new neuron of a window of k, unless it was loaded as another's friend, also loads a copy of its own friend,
// which stays for k tokens after the one that loaded it. The shares are of these copies: each copy is counted
// in the first of `here`, `wanted` and `used` that applies, and the others were wasted.
struct FriendBundling {
  double cost = 0;        // bytes of the new neurons of a window of k, relative to those without friends
  uint32_t with_one = 0;  // neurons that ever fire together with another
  uint32_t friends = 0;   // number of different closest friends of those neurons
  double here = 0;        // the friend is in the window already: it was used, or another copy was loaded
  double wanted = 0;      // the token that loaded the copy uses the friend
  double used = 0;        // a later token uses it before the copy is dropped
};
FriendBundling friend_bundling(const SiteActivity& site, uint32_t k, uint32_t skip);

struct ActivityOptions {
  uint32_t most_k = 6;
  uint32_t skip = 16;  // tokens while the window warms up
};
// Shares are of the site's neurons. Friends are left out for sites of too many pairs, and for all after one.
struct SiteActivityFigures {
  std::string site;
  uint32_t neurons = 0;
  uint64_t tokens = 0;
  double active = 0, hot_share = 0, overlap = 0;
  std::vector<double> fresh, held;
  std::optional<double> unrelated_overlap;
  std::optional<double> closest_friend_cost, friends_here, friends_wanted, friends_used;
  std::optional<uint32_t> with_a_friend, closest_friends;

  static constexpr auto figures() {
    using F = SiteActivityFigures;
    return std::tuple(
        Figure{&F::site, "site", Quantity::text, Adds::latest, "its name"},
        Figure{&F::neurons, "neurons", Quantity::count, Adds::latest, "of the site"},
        Figure{&F::tokens, "tokens", Quantity::tokens, Adds::latest, "decoded"},
        Figure{&F::active, "active", Quantity::share, Adds::latest, "used by a token"},
        Figure{&F::fresh, "new", Quantity::share, Adds::latest, "read for a token, by window"},
        Figure{&F::held, "held", Quantity::share, Adds::latest, "in the window, by window"},
        Figure{&F::hot_share, "hot_share", Quantity::share, Adds::latest,
               "of the uses, by the hottest fifth"},
        Figure{&F::overlap, "overlap", Quantity::share, Adds::latest, "shared with the token before"},
        Figure{&F::unrelated_overlap, "unrelated_overlap", Quantity::share, Adds::latest,
               "shared with another text"},
        Figure{&F::closest_friend_cost, "closest_friend_cost", Quantity::ratio, Adds::latest,
               "of bytes with friends to bytes without"},
        Figure{&F::with_a_friend, "with_a_friend", Quantity::count, Adds::latest, "neurons"},
        Figure{&F::closest_friends, "closest_friends", Quantity::count, Adds::latest, "different ones"},
        Figure{&F::friends_here, "friends_here", Quantity::share, Adds::latest, "of the copies"},
        Figure{&F::friends_wanted, "friends_wanted", Quantity::share, Adds::latest, "of the copies"},
        Figure{&F::friends_used, "friends_used", Quantity::share, Adds::latest, "of the copies"});
  }
};

// Means over the sites; without the figures that a site lacks.
struct MeanActivityFigures {
  double active = 0, hot_share = 0, overlap = 0;
  std::vector<double> fresh, held;
  std::optional<double> unrelated_overlap;
  std::optional<double> closest_friend_cost, friends_here, friends_wanted, friends_used;
  std::optional<double> with_a_friend, closest_friends;

  static constexpr auto figures() {
    using F = MeanActivityFigures;
    const auto mean = [](auto member, std::string_view name, Quantity of) {
      return Figure{member, name, of, Adds::latest, "of the sites'"};
    };
    return std::tuple(mean(&F::active, "active", Quantity::share), mean(&F::fresh, "new", Quantity::share),
                      mean(&F::held, "held", Quantity::share), mean(&F::overlap, "overlap", Quantity::share),
                      mean(&F::hot_share, "hot_share", Quantity::share),
                      mean(&F::unrelated_overlap, "unrelated_overlap", Quantity::share),
                      mean(&F::closest_friend_cost, "closest_friend_cost", Quantity::ratio),
                      mean(&F::with_a_friend, "with_a_friend", Quantity::count),
                      mean(&F::closest_friends, "closest_friends", Quantity::count),
                      mean(&F::friends_here, "friends_here", Quantity::share),
                      mean(&F::friends_wanted, "friends_wanted", Quantity::share),
                      mean(&F::friends_used, "friends_used", Quantity::share));
  }
};

struct ActivityFigures {
  uint32_t skipped = 0;
  MeanActivityFigures mean;
  std::vector<SiteActivityFigures> sites;

  static constexpr auto figures() {
    using F = ActivityFigures;
    return std::tuple(
        Figure{&F::skipped, "skipped", Quantity::tokens, Adds::latest, "left out at the begin"},
        Figure{&F::mean, "mean", Quantity::parts, Adds::latest, "over the sites"},
        Figure{&F::sites, "sites", Quantity::parts, Adds::latest, "that decode steps used in part"});
  }
};

// `unrelated` is of another text, or empty.
ActivityFigures activity_figures(const std::vector<SiteActivity>& sites,
                                 const std::vector<SiteActivity>& unrelated, const ActivityOptions& options);
std::string activity_text(const ActivityFigures& activity);

}  // namespace tierd
