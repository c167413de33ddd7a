#include "tools/assembly/builtin_plugins.h"

#include <array>

extern "C" {
extern const tierd_plugin tierd_predictor_dense, tierd_quantizer_plain, tierd_cache_none, tierd_cache_pinned,
    tierd_cache_lru, tierd_balancer_single;
}

namespace tierd {

std::span<const tierd_plugin* const> builtin_plugins() {
  static constexpr std::array kPlugins = {&tierd_predictor_dense, &tierd_quantizer_plain,
                                          &tierd_cache_none,      &tierd_cache_pinned,
                                          &tierd_cache_lru,       &tierd_balancer_single};
  return kPlugins;
}

}  // namespace tierd
