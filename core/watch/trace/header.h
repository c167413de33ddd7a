// The properties of the run beside its events: enough to build the same kernel again, without weights.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/kernel/pass/scheduler.h"
#include "core/kernel/site.h"
#include "core/report/figure.h"

namespace tierd {

struct TraceAgent {
  std::string name;
  uint32_t credits = 0;
};

struct TraceHeader {
  std::map<std::string, std::string> facts;  // for people: model, budget, threads …
  SiteTable sites;
  std::vector<std::vector<uint32_t>> slots;  // [memories][editions] of the arenas
  // describe_extent is not recorded.
  Scheduler::Options scheduler;
  uint32_t max_messages = 0;
  uint32_t max_units = 0;
  std::vector<TraceAgent> agents;  // agent n at n - 1
  uint64_t seed = 0;
  StrategyConfig predictor, quantizer, cache, balancer;
  StrategyConfig heat = {};                                // without a name: there is no separate one
  std::map<std::string, StrategyConfig> tier_caches = {};  // of tiers with a cache of their own

  // Return the bytes that each memory's cache could share out, and their sum.
  std::vector<uint64_t> parts() const;
  uint64_t arena_bytes() const;
  // Divides `arena_bytes` among the memories in the same proportion.
  std::vector<uint64_t> divide(uint64_t arena_bytes) const;
};

std::string header_json(const TraceHeader& header);
// Returns the names in header_json.
std::vector<DeclaredFigure> header_figures();

// Parses and checks an untrusted header: the result can be given to a kernel. Error: corrupt, naming the
// field.
Result<TraceHeader> parse_header(std::string_view text, const std::string& origin);

}  // namespace tierd
