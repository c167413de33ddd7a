// Keeps nothing: every neuron that a step uses is read for that step.
#include <cstring>
#include <new>

#include "tierd/plugin.h"

namespace {

struct None {
  const tierd_host* host;
};

int share(void* self, uint64_t, uint32_t* max_slots) {
  std::memset(max_slots, 0, static_cast<None*>(self)->host->n_sites * sizeof *max_slots);
  return TIERD_OK;
}

int admit(void*, const tierd_set_view* missing, int, uint32_t, uint8_t* verdict, tierd_victims_out* victims) {
  std::memset(verdict, TIERD_VERDICT_BYPASS, missing->n);
  victims->n = 0;
  return TIERD_OK;
}

const tierd_cache_1 kTable = {
    sizeof(tierd_cache_1), share, admit, nullptr, nullptr, nullptr, nullptr, nullptr};

void* create(const tierd_host* host) {
  return new (std::nothrow) None{host};
}
void destroy(void* self) {
  delete static_cast<None*>(self);
}
const void* extension(const char* id) {
  return std::strcmp(id, TIERD_CACHE_1) == 0 ? &kTable : nullptr;
}

}  // namespace

extern "C" const tierd_plugin tierd_cache_none = {
    sizeof(tierd_plugin), "cache", "none", "keeps nothing", 0, create, destroy, extension};
