// The strategies that the scheduler asks, each a table and its instance.
#pragma once

#include "tierd/plugin.h"

namespace tierd {

template <class Table>
struct Strategy {
  const Table* table = nullptr;
  void* self = nullptr;
  const char* name = "";
};

struct Strategies {
  Strategy<tierd_predictor_1> predictor;
  Strategy<tierd_quantizer_1> quantizer;
  Strategy<tierd_cache_1> cache;
  Strategy<tierd_balancer_1> balancer;
};

}  // namespace tierd
