#include "tools/tier-trace/truth.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "core/store/safetensors_writer.h"

namespace tierd {
namespace {

// Whole numbers up to 2^24 are exact; a site has fewer neurons (core/trace/header.cc).
using Numbers = std::vector<float>;

struct SiteTruth {
  Numbers rows, counts, neurons;

  void add(const std::optional<std::vector<uint32_t>>& active) {
    counts.push_back(active ? static_cast<float>(active->size()) : -1.0F);
    if (active) neurons.insert(neurons.end(), active->begin(), active->end());
  }
  void take_back() {
    if (counts.back() > 0) neurons.resize(neurons.size() - static_cast<size_t>(counts.back()));
    counts.pop_back();
  }
};

}  // namespace

Status write_truth(TraceReader& trace, const std::string& path) {
  const SiteTable& sites = trace.header().sites;
  std::vector<SiteTruth> truths(sites.size());
  uint16_t rows = 0;
  for (; const Event* event = trace.peek(); trace.next()) {
    if (const auto* pass = event->as<PassBegins>()) rows = pass->rows;
    const auto unsound = [&](SiteId site) {
      return Error{Code::corrupt, trace.path(),
                   fmt::format("event {}: site {} of {}", trace.position(), site, sites.size())};
    };
    if (const auto* active = event->as<Activated>()) {
      if (active->site >= sites.size()) return unsound(active->site);
      SiteTruth& truth = truths[active->site];
      truth.rows.push_back(rows);
      truth.add(active->neurons);
    } else if (const auto* measured = event->as<Measured>()) {
      // What was measured after a pass is truer than what was predicted before it.
      if (measured->site >= sites.size()) return unsound(measured->site);
      SiteTruth& truth = truths[measured->site];
      if (truth.counts.empty()) return unsound(measured->site);
      truth.take_back();
      truth.add(measured->neurons);
    }
  }
  TIERD_TRY(trace.status());

  std::vector<SafetensorsEntry> entries;
  std::vector<const Numbers*> tensors;
  for (size_t s = 0; s < sites.size(); ++s) {
    if (truths[s].counts.empty()) continue;
    const auto add = [&](const char* suffix, const Numbers& numbers) {
      entries.push_back({sites[s].name + suffix, "F32", {numbers.size()}});
      tensors.push_back(&numbers);
    };
    add(".rows", truths[s].rows);
    add(".counts", truths[s].counts);
    add(".neurons", truths[s].neurons);
  }
  TIERD_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(path, entries));
  for (const Numbers* numbers : tensors) TIERD_TRY(writer.append(std::as_bytes(std::span(*numbers))));
  return writer.finish();
}

}  // namespace tierd
