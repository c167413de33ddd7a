#include "plugins/builtin/builtin.h"

extern "C" {
extern const tierd_plugin tierd_predictor_dense, tierd_quantizer_plain, tierd_cache_none, tierd_cache_pinned,
    tierd_cache_lru, tierd_balancer_single;

const tierd_plugin* const tierd_builtin_plugins[] = {&tierd_predictor_dense,
                                                     &tierd_quantizer_plain,
                                                     &tierd_cache_none,
                                                     &tierd_cache_pinned,
                                                     &tierd_cache_lru,
                                                     &tierd_balancer_single,
                                                     nullptr};
}
