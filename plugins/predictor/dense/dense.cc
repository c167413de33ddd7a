// Every neuron is active, always: what dense models are. Looks ahead along the walk, into the next step, so
// that the disk never runs dry at the last layer.
#include <cstring>
#include <new>

#include "tierd/plugin.h"

namespace {

// How many sites ahead are wished for. Staging memory bounds what is really read ahead; this only has to be
// more.
constexpr uint32_t kSitesAhead = 8;

struct Dense {
  const tierd_host* host;
};

uint32_t caps(void*) {
  return 0;
}

int predict(void*, uint32_t, const tierd_rows_view*, tierd_set_out* out) {
  out->all = 1;
  return TIERD_OK;
}

int look_ahead(void* self, uint32_t site, const tierd_rows_view*, tierd_ahead_out* out) {
  const tierd_host* host = static_cast<Dense*>(self)->host;
  out->n = 0;
  for (uint32_t d = 1; d <= kSitesAhead && d < host->n_sites && out->n < out->cap; ++d) {
    out->item[out->n++] = {(site + d) % host->n_sites, d, 0, nullptr};
  }
  return TIERD_OK;
}

const tierd_predictor_1 kTable = {
    sizeof(tierd_predictor_1), caps, predict, look_ahead, nullptr, nullptr, nullptr};

void* create(const tierd_host* host) {
  return new (std::nothrow) Dense{host};
}
void destroy(void* self) {
  delete static_cast<Dense*>(self);
}
const void* extension(const char* id) {
  return std::strcmp(id, TIERD_PREDICTOR_1) == 0 ? &kTable : nullptr;
}

}  // namespace

extern "C" const tierd_plugin tierd_predictor_dense = {
    sizeof(tierd_plugin), "predictor", "dense", "every neuron is active", 0, create, destroy, extension};
