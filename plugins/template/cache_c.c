/* A cache in C: keeps the first neurons that are loaded, for ever. Copy it, rename it, change `admit`.
 *
 *   gcc -std=c11 -O2 -fPIC -shared -fvisibility=hidden cache_c.c \
 *     $(pkg-config --cflags tierd) -o cache-first.so
 *   tierd --plugin-path . --set cache.name=first … */
#include <stdlib.h>
#include <string.h>

#include "tierd/plugin.h"

typedef struct first {
  const tierd_host* host;
  int64_t most; /* slots an edition */
} first;

static int share(void* self, uint64_t bytes, uint32_t* max_slots) {
  const first* f = self;
  uint32_t e;
  for (e = 0; e < f->host->n_editions; ++e) {
    const uint64_t slot_bytes = f->host->editions[e]->bytes;
    /* Edition by edition, as long as there is room; max_slots holds the most that an edition can have. */
    if ((int64_t)max_slots[e] > f->most) max_slots[e] = (uint32_t)f->most;
    if (max_slots[e] > bytes / slot_bytes) max_slots[e] = (uint32_t)(bytes / slot_bytes);
    bytes -= max_slots[e] * slot_bytes;
  }
  return TIERD_OK;
}

static int admit(void* self, const tierd_set_view* missing, int priority, uint32_t free_slots,
                 uint8_t* verdict, tierd_victims_out* victims) {
  uint32_t i;
  (void)self;
  (void)priority;
  victims->n = 0;
  for (i = 0; i < missing->n; ++i) {
    verdict[i] = i < free_slots ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS;
  }
  return TIERD_OK;
}

/* Members that are not named are NULL: a table that grows needs no change here. */
static const tierd_cache_1 table = {.size = sizeof(tierd_cache_1), .share = share, .admit = admit};

static int create(const tierd_host* host, void** self) {
  first* f = malloc(sizeof *f);
  if (f == NULL) return TIERD_E_NO_SPACE;
  f->host = host;
  if (host->integer(host->context, "most", &f->most) < 0) {
    free(f);
    return TIERD_E_INVALID;
  }
  *self = f;
  return TIERD_OK;
}

static void destroy(void* self) {
  free(self);
}

static const void* extension(const char* id) {
  return strcmp(id, TIERD_CACHE_1) == 0 ? &table : NULL;
}

static const tierd_param params[] = {
    {"most", TIERD_PARAM_INTEGER, 0, "1000000", 0, 1000000, NULL, "number of neurons kept of an edition"},
};

TIERD_EXPORT const tierd_plugin tierd_plugin_entry = {TIERD_ABI_MAJOR,
                                                      TIERD_ABI_MINOR,
                                                      sizeof(tierd_plugin),
                                                      "cache",
                                                      "first",
                                                      "1.0",
                                                      "keeps the neurons that were loaded first",
                                                      NULL,
                                                      0,
                                                      params,
                                                      1,
                                                      sizeof(tierd_param),
                                                      create,
                                                      destroy,
                                                      extension};
