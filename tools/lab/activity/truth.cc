#include "tools/lab/activity/truth.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "core/watch/trace/recorded_pass.h"
#include "tools/lab/activity/packed_lists.h"
#include "tools/lab/safetensors/safetensors_writer.h"

namespace tierd {
namespace {

// Integers up to 2^24 are exact as floats; a site has fewer neurons (core/watch/trace/header.cc).
using Numbers = std::vector<float>;

struct SiteTruth {
  Numbers rows, counts;
  PackedLists lists;     // of the counts that are not -1
  uint64_t neurons = 0;  // total over these lists

  void add(const std::optional<std::vector<uint32_t>>& active) {
    counts.push_back(active ? static_cast<float>(active->size()) : -1.0F);
    if (!active) return;
    lists.push_back(*active);
    neurons += active->size();
  }
  void take_back() {
    if (counts.back() >= 0) {
      neurons -= static_cast<uint64_t>(counts.back());
      lists.pop_back();
    }
    counts.pop_back();
  }
};

Status append(SafetensorsWriter& writer, const Numbers& numbers) {
  return writer.append(std::as_bytes(std::span(numbers)));
}

}  // namespace

Status write_truth(TraceReader& trace, const std::string& path) {
  const SiteTable& sites = trace.header().sites;
  std::vector<SiteTruth> truths(sites.size());
  uint16_t rows = 0;
  for (; const Event* event = trace.peek(); trace.next()) {
    if (const auto* pass = event->as<PassBegins>()) rows = pass->rows;
    if (const auto* active = event->as<Activated>()) {
      TIERD_TRY(check_listed(*active, trace));
      SiteTruth& truth = truths[active->site];
      truth.rows.push_back(rows);
      truth.add(active->neurons);
    } else if (const auto* measured = event->as<Measured>()) {
      // Neurons that were measured after a pass replace those predicted before it.
      TIERD_TRY(check_listed(*measured, trace));
      SiteTruth& truth = truths[measured->site];
      if (truth.counts.empty()) {
        return Error{Code::corrupt, trace.path(),
                     fmt::format("event {}: {} was measured before any neuron of it was active",
                                 trace.position(), sites[measured->site].name)};
      }
      truth.take_back();
      truth.add(measured->neurons);
    }
  }
  TIERD_TRY(trace.status());

  std::vector<SafetensorsEntry> entries;
  for (size_t s = 0; s < sites.size(); ++s) {
    const SiteTruth& truth = truths[s];
    if (truth.counts.empty()) continue;
    entries.push_back({sites[s].name + ".rows", "F32", {truth.rows.size()}});
    entries.push_back({sites[s].name + ".counts", "F32", {truth.counts.size()}});
    entries.push_back({sites[s].name + ".neurons", "F32", {truth.neurons}});
  }
  TIERD_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(path, entries));
  for (const SiteTruth& truth : truths) {
    TIERD_TRY(append(writer, truth.rows));
    TIERD_TRY(append(writer, truth.counts));
    for (size_t i = 0; i < truth.lists.size(); ++i) {
      const std::vector<uint32_t> list = truth.lists[i];
      TIERD_TRY(append(writer, Numbers(list.begin(), list.end())));
    }
  }
  return writer.finish();
}

}  // namespace tierd
