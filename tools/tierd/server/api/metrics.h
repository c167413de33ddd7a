// /metrics for Prometheus: llama-server's names, and tierd's own for the transfers between tiers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/report/figure.h"
#include "tools/tierd/server/api/service_state.h"

namespace tierd {

// The data of a site that labels and shares need.
struct WatchedSite {
  std::string name;
  uint32_t neurons = 0;
};

// A name of /metrics.
struct DeclaredMetric {
  std::string path;
  Quantity unit;
  Adds adds;
  std::string help;
};
std::vector<DeclaredMetric> declared_metrics();

class Metrics {
 public:
  explicit Metrics(std::vector<WatchedSite> sites);
  ~Metrics();

  // Returns the metrics in Prometheus' text format, version 0.0.4. Not thread-safe.
  std::string text(const ServiceState& state);

 private:
  struct Series;
  std::vector<WatchedSite> sites_;
  std::unique_ptr<Series> series_;
};

}  // namespace tierd
