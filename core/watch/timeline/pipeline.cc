#include "core/watch/timeline/pipeline.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace tierd {
namespace {

enum Activity : uint8_t {
  kStep,
  kCompute,
  kPredicting,
  kDemand,
  kPreload,
  kMigration,
  kCopy,
  kWait,
  kWaitOnDemand,
  kActivities
};

std::optional<Activity> activity_of(const Slice& slice) {
  switch (slice.kind) {
    case Slice::Kind::predictor:
      return kPredicting;
    case Slice::Kind::wait:
      return slice.on_demand ? kWaitOnDemand : kWait;
    case Slice::Kind::message:
      if (slice.computes()) return kCompute;
      if (slice.op == Op::move) return kCopy;
      if (!slice.is_read()) return std::nullopt;
      return static_cast<Activity>(kDemand + static_cast<int>(slice.priority));
    case Slice::Kind::step:
    case Slice::Kind::pass:
      break;
  }
  return std::nullopt;
}

// The begin or end of a slice of an activity.
struct Edge {
  uint64_t ns;
  int8_t change;
  Activity activity;
};

void add_edges(const Slice& slice, Activity activity, std::vector<Edge>& edges) {
  if (slice.end_ns <= slice.begin_ns) return;
  edges.push_back({slice.begin_ns, 1, activity});
  edges.push_back({slice.end_ns, -1, activity});
}

using Slices = std::vector<const Slice*>;

// Returns the steps that count, in the order of their beginnings.
Slices whole_decode_steps(const Slices& slices, uint64_t whole_from_ns) {
  Slices steps;
  for (const Slice* slice : slices) {
    if (slice->kind == Slice::Kind::step && !slice->prefill && slice->begin_ns >= whole_from_ns)
      steps.push_back(slice);
  }
  return steps;
}

bool ends_within(const Slices& steps, const Slice& slice) {
  const auto after = std::upper_bound(steps.begin(), steps.end(), slice.end_ns,
                                      [](uint64_t ns, const Slice* step) { return ns < step->begin_ns; });
  return after != steps.begin() && slice.end_ns <= (*std::prev(after))->end_ns;
}

}  // namespace

PipelineTimes pipeline_times(const Timeline& timeline) {
  PipelineTimes times;
  const Slices slices = timeline.sorted();
  const Slices steps = whole_decode_steps(slices, timeline.whole_from_ns());
  times.steps = steps.size();
  std::vector<Edge> edges;
  for (const Slice* step : steps) add_edges(*step, kStep, edges);
  for (const Slice* slice : slices) {
    const std::optional<Activity> activity = activity_of(*slice);
    if (!activity) continue;
    add_edges(*slice, *activity, edges);
    if (!ends_within(steps, *slice)) continue;
    if (activity == kDemand) times.demand_bytes += slice->bytes, times.demand_reads += slice->reads;
    if (activity == kCopy) times.copied_bytes += slice->bytes;
    if (activity == kPreload) times.preload_bytes += slice->bytes, times.preload_reads += slice->reads;
  }
  // Ends come first, so that two adjacent steps stay separate.
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return a.ns != b.ns ? a.ns < b.ns : a.change < b.change; });

  std::array<int64_t, kActivities> open{};
  uint64_t then = 0, step_preload = 0, step_busy = 0;
  for (const Edge& edge : edges) {
    const uint64_t took = edge.ns - then;
    const auto add = [&](bool there, uint64_t& to) { to += there ? took : 0; };
    if (open[kStep] > 0) {
      const bool busy = open[kCompute] > 0 || open[kPredicting] > 0;
      const bool flash = open[kDemand] > 0 || open[kPreload] > 0 || open[kMigration] > 0;
      const bool preload = open[kPreload] > 0;
      times.wall_ns += took;
      add(open[kCompute] > 0, times.compute_ns);
      add(open[kPredicting] > 0, times.predictor_ns);
      add(busy, times.busy_ns), add(busy, step_busy);
      add(flash, times.flash_ns);
      add(open[kDemand] > 0, times.demand_ns);
      add(preload, times.preload_ns), add(preload, step_preload);
      add(flash && busy, times.overlap_ns);
      add(preload && busy, times.hidden_ns);
      add(open[kCopy] > 0, times.copied_ns);
      add(open[kCopy] > 0 && busy, times.copied_beside_ns);
      add(open[kWait] > 0 || open[kWaitOnDemand] > 0, times.waited_ns);
      add(open[kWaitOnDemand] > 0, times.waited_on_demand_ns);
    }
    then = edge.ns;
    open[edge.activity] += edge.change;
    if (edge.activity != kStep || edge.change > 0) continue;
    times.hideable_ns += std::min(step_preload, step_busy);
    step_preload = step_busy = 0;
  }
  return times;
}

}  // namespace tierd
