// One computing unit does everything.
#include <cstring>

#include "tierd/plugin.h"

namespace {

char the_instance;  // it has no state

int assign(void*, const tierd_set_view* set, uint32_t, uint8_t* unit) {
  std::memset(unit, 0, set->n);
  return TIERD_OK;
}

const tierd_balancer_1 kTable = {sizeof(tierd_balancer_1), assign};

void* create(const tierd_host*) {
  return &the_instance;
}
void destroy(void*) {}
const void* extension(const char* id) {
  return std::strcmp(id, TIERD_BALANCER_1) == 0 ? &kTable : nullptr;
}

}  // namespace

extern "C" const tierd_plugin tierd_balancer_single = {
    sizeof(tierd_plugin), "balancer", "single", "one unit computes all", 0, create, destroy, extension};
