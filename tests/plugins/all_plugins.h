// The strategies of this project, for tests below the programs that link them.
#pragma once

#include <span>

#include "tierd/plugin.h"

extern "C" {
extern const tierd_plugin tierd_predictor_dense, tierd_quantizer_plain, tierd_cache_none, tierd_cache_pinned,
    tierd_cache_lru, tierd_balancer_single;
}

namespace tierd {

inline std::span<const tierd_plugin* const> all_plugins() {
  static const tierd_plugin* const all[] = {&tierd_predictor_dense, &tierd_quantizer_plain,
                                            &tierd_cache_none,      &tierd_cache_pinned,
                                            &tierd_cache_lru,       &tierd_balancer_single};
  return all;
}

}  // namespace tierd
