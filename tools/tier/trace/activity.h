// How the active neurons of one token follow those of the tokens before: what a window over the last tokens
// would hold and what it would read, whatever cache the run had.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/watch/trace/packed_lists.h"
#include "core/watch/trace/reader.h"

namespace tierd {

// SiteActivity has, for each decoded token, the neurons of one site that it used, ascending.
struct SiteActivity {
  std::string name;
  uint32_t neurons = 0;
  PackedLists tokens;
};

// Sites of which a decode step did not use everything; `measured`: what truly gave something, of the steps
// that were measured. Errors: of the trace; invalid_argument where there is no such site.
Result<std::vector<SiteActivity>> read_activity(TraceReader& trace, bool measured);

// Means over the tokens after the first `skip`, as shares of the site's neurons.
struct WindowShares {
  double active = 0;          // used by a token
  std::vector<double> fresh;  // [k - 1] and by none of the k before it: what a window of k reads
  std::vector<double> held;   // [k - 1] used by it or by one of the k before it
};
WindowShares window_shares(const SiteActivity& site, uint32_t most_k, uint32_t skip);

// Returns which share of all uses falls to the most used fifth of the neurons.
double hot_share(const SiteActivity& site, uint32_t skip);

// How much of a token's set another had: the one before it; and one of a text that has nothing to do with it,
// at the same place.
double overlap_with_previous(const SiteActivity& site, uint32_t skip);
double overlap_with(const SiteActivity& site, const SiteActivity& unrelated, uint32_t skip);

// Bundling each neuron with the one that fires with it most often (LLM in a flash, section 3.2.2: it fails,
// since the most active neurons are the friends of almost all). Friends are learned from the same tokens.
// A new neuron of a window of k that has not come as another's friend brings a copy of its own friend, which
// stays for k tokens after the one that it came with. The shares are of these copies: each is counted in the
// first that holds, and what is left has come in vain.
struct FriendBundling {
  double cost = 0;        // bytes that the new neurons of a window of k take, over those without friends
  uint32_t with_one = 0;  // neurons that ever fire with another
  uint32_t friends = 0;   // how many different closest friends those have
  double here = 0;        // the friend is in the window already: it was used, or another copy came
  double wanted = 0;      // the token that the copy came with uses the friend
  double used = 0;        // a later token does, before the copy leaves
};
FriendBundling friend_bundling(const SiteActivity& site, uint32_t k, uint32_t skip);

struct ActivityOptions {
  uint32_t most_k = 6;
  uint32_t skip = 16;  // tokens while the window is cold
};
// `unrelated`: of another text, or empty.
nlohmann::json activity_json(const std::vector<SiteActivity>& sites,
                             const std::vector<SiteActivity>& unrelated, const ActivityOptions& options);
std::string activity_text(const nlohmann::json& activity);

}  // namespace tierd
