#include "core/host/strategy_set.h"

#include <fmt/format.h>

#include <cstring>

namespace tierd {

int StrategySet::evictable(void* context, uint32_t s, uint32_t neuron) {
  const auto& set = *static_cast<const StrategySet*>(context);
  const Residency* residency = set.residency_;
  if (residency == nullptr || s >= set.sites_->size() || neuron >= (*set.sites_)[s].n) return 0;
  return residency->valid(s, neuron) && !residency->pinned(s, neuron) ? 1 : 0;
}

Result<std::unique_ptr<StrategySet>> StrategySet::create(std::span<const tierd_plugin* const> plugins,
                                                         const StrategyNames& names,
                                                         const std::vector<Site>& sites, uint64_t seed) {
  std::unique_ptr<StrategySet> set(new StrategySet);
  set->sites_ = &sites;
  set->encodings_.resize(sites.size());
  for (SiteId s = 0; s < sites.size(); ++s) {
    const Site& site = sites[s];
    set->encodings_[s] = {site.encoding, 0, site.slot_bytes};
    tierd_site_view view{};
    view.size = sizeof view;
    view.site = s;
    view.parent = TIERD_NO_SITE;
    view.alias_of = site.domain == s ? TIERD_NO_SITE : site.domain;
    view.name = site.name.c_str();
    view.layer = site.layer;
    view.op_group = site.op_group;
    view.axis = TIERD_AXIS_ROW;
    view.merge = TIERD_MERGE_CONCAT;
    view.given = site.given ? 1 : 0;
    view.n = site.n;
    view.n_in = site.n_in;
    view.n_out = site.n_out;
    view.n_enc = 1;
    view.enc = &set->encodings_[s];
    set->views_.push_back(view);
  }
  set->host_.size = sizeof set->host_;
  set->host_.context = set.get();
  set->host_.seed = seed;
  set->host_.n_sites = static_cast<uint32_t>(sites.size());
  set->host_.sites = set->views_.data();
  set->host_.evictable = evictable;

  Strategies& s = set->strategies_;
  const auto fill = [&](const char* kind, const std::string& name, const char* extension,
                        auto& strategy) -> Status {
    TIERD_ASSIGN(const void* table, set->make(plugins, kind, name, extension, strategy.self));
    strategy.table = static_cast<std::remove_reference_t<decltype(*strategy.table)>*>(table);
    strategy.name = set->made_.back().plugin->name;
    return {};
  };
  TIERD_TRY(fill("predictor", names.predictor, TIERD_PREDICTOR_1, s.predictor));
  TIERD_TRY(fill("quantizer", names.quantizer, TIERD_QUANTIZER_1, s.quantizer));
  TIERD_TRY(fill("cache", names.cache, TIERD_CACHE_1, s.cache));
  TIERD_TRY(fill("balancer", names.balancer, TIERD_BALANCER_1, s.balancer));
  return set;
}

StrategySet::~StrategySet() {
  for (const Made& made : made_) made.plugin->destroy(made.self);
}

Result<const void*> StrategySet::make(std::span<const tierd_plugin* const> plugins, const char* kind,
                                      const std::string& name, const char* extension, void*& self) {
  std::string known;
  for (const tierd_plugin* plugin : plugins) {
    if (std::strcmp(plugin->kind, kind) != 0) continue;
    known += (known.empty() ? "" : ", ") + std::string(plugin->name);
    if (name != plugin->name) continue;
    const void* table = plugin->extension(extension);
    if (table == nullptr) {
      return Error{Code::plugin_fault, fmt::format("{} '{}'", kind, name),
                   fmt::format("does not offer {}", extension)};
    }
    self = plugin->create(&host_);
    if (self == nullptr) {
      return Error{Code::plugin_fault, fmt::format("{} '{}'", kind, name), "could not be created"};
    }
    made_.push_back({plugin, self});
    return table;
  }
  return Error{Code::not_found, fmt::format("{}.name", kind),
               fmt::format("there is no {} '{}'; known: {}", kind, name, known)};
}

Result<std::vector<uint32_t>> StrategySet::share(uint64_t bytes) {
  std::vector<uint32_t> slots(sites_->size());
  const auto& cache = strategies_.cache;
  const auto fault = [&](const std::string& what) {
    return Error{Code::plugin_fault, fmt::format("cache '{}'", cache.name), "share: " + what};
  };
  if (const int code = cache.table->share(cache.self, bytes, slots.data()); code < 0) {
    return fault(fmt::format("answered {}", code));
  }
  uint64_t used = 0;
  for (SiteId s = 0; s < sites_->size(); ++s) {
    const Site& site = (*sites_)[s];
    if (slots[s] > (site.domain == s ? site.n : 0))
      return fault(fmt::format("{} slots for {}", slots[s], site.name));
    used += uint64_t{slots[s]} * site.slot_bytes;
  }
  if (used > bytes) return fault(fmt::format("{} bytes of {}", used, bytes));
  return slots;
}

}  // namespace tierd
