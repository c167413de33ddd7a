// A closest friend for each neuron of a model's networks; some are the friends of many.
#pragma once

#include <string>

#include "core/base/random.h"
#include "core/model/config.h"
#include "core/store/friends.h"

namespace tierd {

inline std::vector<uint32_t> draw_friends(Random& random, uint32_t neurons) {
  std::vector<uint32_t> friends;
  const uint32_t popular = random.below(neurons);
  while (friends.size() < neurons) {
    const uint32_t other = random.below(2) == 0 ? popular : random.below(neurons);
    if (other != friends.size()) friends.push_back(other);
  }
  return friends;
}

inline FriendTables draw_friends(const ModelConfig& config, uint64_t seed = 1) {
  Random random(seed);
  FriendTables tables;
  for (uint32_t layer = 0; layer < config.n_layers; ++layer)
    tables["layers." + std::to_string(layer) + ".ffn"] = draw_friends(random, config.d_ff);
  return tables;
}

}  // namespace tierd
