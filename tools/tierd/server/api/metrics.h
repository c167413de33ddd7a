// /metrics: what Prometheus collects, by llama-server's names and, of what moves between the tiers, ours.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/tierd/server/api/service_state.h"

namespace tierd {

// WatchedSite has what labels and shares need to know of a site.
struct WatchedSite {
  std::string name;
  uint32_t neurons = 0;
};

class Metrics {
 public:
  explicit Metrics(std::vector<WatchedSite> sites);
  ~Metrics();

  // In Prometheus' text format, version 0.0.4. One thread.
  std::string text(const ServiceState& state);

 private:
  struct Series;
  std::vector<WatchedSite> sites_;
  std::unique_ptr<Series> series_;
};

}  // namespace tierd
