// Drops what was used longest ago, site by site. For a dense model, which uses everything in the same order
// every step, that is the worst choice there is, and worth showing.
#include <algorithm>
#include <cstring>
#include <list>
#include <new>
#include <vector>

#include "tierd/plugin.h"

namespace {

struct SiteOrder {
  std::list<uint32_t> order;  // of the neurons here, least recently used first
  std::vector<std::list<uint32_t>::iterator> place;
  std::vector<bool> here;
};

struct Lru {
  const tierd_host* host;
  std::vector<SiteOrder> sites;
};

// Every site keeps the same share of its neurons.
int share(void* self, uint64_t bytes, uint32_t* max_slots) {
  const tierd_host& host = *static_cast<Lru*>(self)->host;
  uint64_t whole = 0;
  for (uint32_t s = 0; s < host.n_sites; ++s) {
    const tierd_site_view& site = host.sites[s];
    if (site.alias_of == TIERD_NO_SITE) whole += uint64_t{site.n} * site.enc[0].bytes;
  }
  const double part = whole == 0 ? 0 : std::min(1.0, static_cast<double>(bytes) / static_cast<double>(whole));
  for (uint32_t s = 0; s < host.n_sites; ++s) {
    const tierd_site_view& site = host.sites[s];
    max_slots[s] = 0;
    if (site.alias_of != TIERD_NO_SITE) continue;
    // Rounding may not promise a slot too many.
    max_slots[s] = static_cast<uint32_t>(
        std::min<uint64_t>(static_cast<uint64_t>(part * site.n), bytes / site.enc[0].bytes));
    bytes -= uint64_t{max_slots[s]} * site.enc[0].bytes;
  }
  return TIERD_OK;
}

void touch_one(SiteOrder& site, uint32_t neuron) {
  if (site.here[neuron]) site.order.splice(site.order.end(), site.order, site.place[neuron]);
}

int admit(void* self, const tierd_set_view* missing, int, uint32_t free_slots, uint8_t* verdict,
          tierd_victims_out* victims) {
  auto& lru = *static_cast<Lru*>(self);
  SiteOrder& site = lru.sites[missing->site];
  auto candidate = site.order.begin();
  victims->n = 0;
  for (uint32_t i = 0; i < missing->n; ++i) {
    verdict[i] = TIERD_VERDICT_KEEP;
    if (free_slots > 0) {
      --free_slots;
      continue;
    }
    while (candidate != site.order.end() &&
           lru.host->evictable(lru.host->context, missing->site, *candidate) == 0) {
      ++candidate;
    }
    if (candidate == site.order.end() || victims->n == victims->cap) {
      verdict[i] = TIERD_VERDICT_BYPASS;
      continue;
    }
    victims->item[victims->n++] = {missing->site, *candidate++};
  }
  return TIERD_OK;
}

int landed(void* self, uint32_t s, const uint32_t* idx, uint32_t n) {
  SiteOrder& site = static_cast<Lru*>(self)->sites[s];
  for (uint32_t i = 0; i < n; ++i) {
    if (site.here[idx[i]]) continue;
    site.here[idx[i]] = true;
    site.place[idx[i]] = site.order.insert(site.order.end(), idx[i]);
  }
  return TIERD_OK;
}

int dropped(void* self, uint32_t s, const uint32_t* idx, uint32_t n, int) {
  SiteOrder& site = static_cast<Lru*>(self)->sites[s];
  for (uint32_t i = 0; i < n; ++i) {
    if (!site.here[idx[i]]) continue;
    site.here[idx[i]] = false;
    site.order.erase(site.place[idx[i]]);
  }
  return TIERD_OK;
}

int touch(void* self, const tierd_set_view* used) {
  auto& lru = *static_cast<Lru*>(self);
  SiteOrder& site = lru.sites[used->site];
  for (uint32_t i = 0; i < used->n; ++i) touch_one(site, used->idx == nullptr ? i : used->idx[i]);
  return TIERD_OK;
}

const tierd_cache_1 kTable = {sizeof(tierd_cache_1), share, admit, landed, dropped, touch, nullptr, nullptr};

void* create(const tierd_host* host) {
  auto* lru = new (std::nothrow) Lru;
  if (lru == nullptr) return nullptr;
  lru->host = host;
  lru->sites.resize(host->n_sites);
  for (uint32_t s = 0; s < host->n_sites; ++s) {
    lru->sites[s].place.resize(host->sites[s].n);
    lru->sites[s].here.resize(host->sites[s].n);
  }
  return lru;
}
void destroy(void* self) {
  delete static_cast<Lru*>(self);
}
const void* extension(const char* id) {
  return std::strcmp(id, TIERD_CACHE_1) == 0 ? &kTable : nullptr;
}

}  // namespace

extern "C" const tierd_plugin tierd_cache_lru = {
    sizeof(tierd_plugin), "cache", "lru", "drops what was used longest ago", 0, create, destroy, extension};
