// Compares the active neurons of one token with those of the tokens before: what a window over the last
// tokens would hold and read, independent of the run's cache.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
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
// `unrelated` is of another text, or empty.
nlohmann::json activity_json(const std::vector<SiteActivity>& sites,
                             const std::vector<SiteActivity>& unrelated, const ActivityOptions& options);
std::string activity_text(const nlohmann::json& activity);

}  // namespace tierd
