// A plugin with a host around it, called through its table as the kernel would.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/plugins/all_plugins.h"

namespace tierd {

struct TestSite {
  uint32_t n = 0;
  uint32_t slot_bytes = 0;
  bool given = false;
  uint32_t alias_of = TIERD_NO_SITE;
};

template <class Table>
class Plugged {
 public:
  Plugged(const tierd_plugin& plugin, const char* extension, const std::vector<TestSite>& sites)
      : plugin_(plugin), encodings_(sites.size()), views_(sites.size()) {
    for (uint32_t s = 0; s < sites.size(); ++s) {
      encodings_[s] = {4, 0, sites[s].slot_bytes};
      views_[s] = {};
      views_[s].size = sizeof views_[s];
      views_[s].site = s;
      views_[s].alias_of = sites[s].alias_of;
      views_[s].given = sites[s].given ? 1 : 0;
      views_[s].n = sites[s].n;
      views_[s].n_enc = 1;
      views_[s].enc = &encodings_[s];
    }
    host_.size = sizeof host_;
    host_.context = this;
    host_.n_sites = static_cast<uint32_t>(sites.size());
    host_.sites = views_.data();
    host_.evictable = [](void* context, uint32_t site, uint32_t neuron) {
      const auto& plugged = *static_cast<Plugged*>(context);
      return plugged.evictable ? plugged.evictable(site, neuron) : 1;
    };
    self = plugin.create(&host_);
    EXPECT_NE(self, nullptr);
    table = static_cast<const Table*>(plugin.extension(extension));
    EXPECT_NE(table, nullptr);
    EXPECT_EQ(plugin.extension("tierd.something_else/1"), nullptr);
    EXPECT_EQ(table->size, sizeof(Table));
  }
  ~Plugged() { plugin_.destroy(self); }
  Plugged(const Plugged&) = delete;
  Plugged& operator=(const Plugged&) = delete;

  const Table* table = nullptr;
  void* self = nullptr;
  std::function<int(uint32_t, uint32_t)> evictable;

 private:
  const tierd_plugin& plugin_;
  std::vector<tierd_encoding_view> encodings_;
  std::vector<tierd_site_view> views_;
  tierd_host host_{};
};

inline tierd_set_view set_of(uint32_t site, const std::vector<uint32_t>& neurons) {
  tierd_set_view view{};
  view.size = sizeof view;
  view.site = site;
  view.rows = 1;
  view.n = static_cast<uint32_t>(neurons.size());
  view.idx = neurons.data();
  return view;
}

// What a cache answers about missing neurons.
struct Admitted {
  std::vector<uint8_t> verdicts;
  std::vector<uint32_t> victims;
};
inline Admitted admit(Plugged<tierd_cache_1>& cache, uint32_t site, const std::vector<uint32_t>& missing,
                      uint32_t free_slots) {
  Admitted result;
  result.verdicts.assign(missing.size(), 99);
  std::vector<tierd_neuron> victims(missing.size());
  tierd_victims_out out{static_cast<uint32_t>(missing.size()), 0, victims.data()};
  const tierd_set_view set = set_of(site, missing);
  EXPECT_EQ(
      cache.table->admit(cache.self, &set, TIERD_PRIORITY_DEMAND, free_slots, result.verdicts.data(), &out),
      TIERD_OK);
  EXPECT_LE(out.n, out.cap);
  for (uint32_t i = 0; i < out.n; ++i) {
    EXPECT_EQ(victims[i].site, site);
    result.victims.push_back(victims[i].neuron);
  }
  return result;
}

}  // namespace tierd
