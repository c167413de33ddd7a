// The closest friend of each neuron: the one that is most often active together with it (LLM in a flash,
// section 3.2, bundling by co-activation). Counted by `tier-trace activity --friends`, laid beside each
// neuron by bundling closest-friend.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// [n] of each neuron of a site, by the site's name.
using FriendTables = std::map<std::string, std::vector<uint32_t>, std::less<>>;

// What is wrong with the friends of a site of `neurons` neurons; empty if nothing is: there is one for each,
// another one, of the same site.
std::string fault_of_friends(std::span<const uint32_t> friends, uint32_t neurons);

// A JSON object with a list of numbers for each site. Errors: those of files; corrupt, naming the key. Which
// sites there are, and how large they are, is checked where they are known: by plan_layout.
Result<FriendTables> read_friends(const std::string& path);
std::string friends_text(const FriendTables& tables);

}  // namespace tierd
