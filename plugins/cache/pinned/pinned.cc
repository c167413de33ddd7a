// What fits stays from the start to the end; the rest streams by. The split is by bytes: every site keeps the
// same share of its neurons, so that there is always something to compute while the next bytes come in.
//
// A site whose set is given (an embedding: one row a token) uses few of its neurons in a step; it gets what
// the others leave.
#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "tierd/plugin.h"

namespace {

struct Pinned {
  const tierd_host* host;
  std::vector<uint32_t> slots;             // [sites]
  std::vector<std::vector<uint32_t>> idx;  // [sites] the neurons that stay, for `ahead`
};

uint64_t slot_bytes(const tierd_site_view& site) {
  return site.enc[0].bytes;
}

// Spreads `bytes` over the sites that `takes_part` selects and returns what is left.
template <class Selector>
uint64_t spread(const tierd_host& host, uint64_t bytes, uint32_t* slots, Selector takes_part) {
  uint64_t whole = 0;
  for (uint32_t s = 0; s < host.n_sites; ++s) {
    if (takes_part(host.sites[s])) whole += host.sites[s].n * slot_bytes(host.sites[s]);
  }
  if (whole == 0) return bytes;
  const double share = std::min(1.0, static_cast<double>(bytes) / static_cast<double>(whole));
  for (uint32_t s = 0; s < host.n_sites; ++s) {
    const tierd_site_view& site = host.sites[s];
    if (!takes_part(site)) continue;
    slots[s] = static_cast<uint32_t>(
        std::min<uint64_t>(static_cast<uint64_t>(share * site.n), bytes / slot_bytes(site)));
    bytes -= slots[s] * slot_bytes(site);
  }
  // What rounding left over, one slot a site and round.
  for (bool gave = true; gave;) {
    gave = false;
    for (uint32_t s = 0; s < host.n_sites; ++s) {
      const tierd_site_view& site = host.sites[s];
      if (!takes_part(site) || slots[s] == site.n || slot_bytes(site) > bytes) continue;
      ++slots[s];
      bytes -= slot_bytes(site);
      gave = true;
    }
  }
  return bytes;
}

int share(void* self, uint64_t bytes, uint32_t* max_slots) {
  auto& pinned = *static_cast<Pinned*>(self);
  const tierd_host& host = *pinned.host;
  std::fill_n(max_slots, host.n_sites, 0u);
  bytes = spread(host, bytes, max_slots,
                 [](const tierd_site_view& s) { return s.alias_of == TIERD_NO_SITE && s.given == 0; });
  spread(host, bytes, max_slots,
         [](const tierd_site_view& s) { return s.alias_of == TIERD_NO_SITE && s.given != 0; });
  pinned.slots.assign(max_slots, max_slots + host.n_sites);
  pinned.idx.assign(host.n_sites, {});
  for (uint32_t s = 0; s < host.n_sites; ++s) {
    for (uint32_t i = 0; i < pinned.slots[s]; ++i) pinned.idx[s].push_back(i);
  }
  return TIERD_OK;
}

int admit(void* self, const tierd_set_view* missing, int, uint32_t free_slots, uint8_t* verdict,
          tierd_victims_out* victims) {
  const auto& pinned = *static_cast<Pinned*>(self);
  victims->n = 0;
  for (uint32_t i = 0; i < missing->n; ++i) {
    const uint32_t neuron = missing->idx == nullptr ? i : missing->idx[i];
    const bool stays = neuron < pinned.slots[missing->site] && free_slots > 0;
    if (stays) --free_slots;
    verdict[i] = stays ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS;
  }
  return TIERD_OK;
}

int ahead(void* self, uint32_t site, tierd_ahead_out* out) {
  const auto& pinned = *static_cast<Pinned*>(self);
  out->n = 0;
  if (site != TIERD_NO_SITE) return TIERD_OK;
  for (uint32_t s = 0; s < pinned.slots.size() && out->n < out->cap; ++s) {
    if (pinned.slots[s] != 0) out->item[out->n++] = {s, 0, pinned.slots[s], pinned.idx[s].data()};
  }
  return TIERD_OK;
}

const tierd_cache_1 kTable = {sizeof(tierd_cache_1), share, admit, nullptr, nullptr, nullptr, ahead, nullptr};

void* create(const tierd_host* host) {
  auto* pinned = new (std::nothrow) Pinned;
  if (pinned != nullptr) pinned->host = host;
  return pinned;
}
void destroy(void* self) {
  delete static_cast<Pinned*>(self);
}
const void* extension(const char* id) {
  return std::strcmp(id, TIERD_CACHE_1) == 0 ? &kTable : nullptr;
}

}  // namespace

extern "C" const tierd_plugin tierd_cache_pinned = {
    sizeof(tierd_plugin),
    "cache",
    "pinned",
    "what fits stays, an equal share of each site; the rest streams",
    0,
    create,
    destroy,
    extension};
