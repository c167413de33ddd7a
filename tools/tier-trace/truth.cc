#include "tools/tier-trace/truth.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/store/disk.h"

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
  const std::vector<Site>& sites = trace.header().sites;
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

  nlohmann::json header = {{"__metadata__", {{"made_by", "tier-trace truth"}}}};
  std::vector<const Numbers*> tensors;
  uint64_t bytes = 0;
  for (size_t s = 0; s < sites.size(); ++s) {
    if (truths[s].counts.empty()) continue;
    const auto add = [&](const char* suffix, const Numbers& numbers) {
      const uint64_t end = bytes + numbers.size() * sizeof(float);
      header[sites[s].name + suffix] = {
          {"dtype", "F32"}, {"shape", {numbers.size()}}, {"data_offsets", {bytes, end}}};
      tensors.push_back(&numbers);
      bytes = end;
    };
    add(".rows", truths[s].rows);
    add(".counts", truths[s].counts);
    add(".neurons", truths[s].neurons);
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t header_bytes = text.size();

  Disk disk;
  const std::string unfinished = path + ".unfinished";
  TIERD_ASSIGN(const OpenFile file, disk.open(unfinished, true));
  uint64_t offset = 0;
  const auto append = [&](std::span<const std::byte> part) -> Status {
    TIERD_TRY(disk.write(file, offset, part));
    offset += part.size();
    return {};
  };
  TIERD_TRY(append(std::as_bytes(std::span(&header_bytes, 1))));
  TIERD_TRY(append(std::as_bytes(std::span(text))));
  for (const Numbers* numbers : tensors) TIERD_TRY(append(std::as_bytes(std::span(*numbers))));
  TIERD_TRY(disk.sync(file));
  return disk.rename(unfinished, path);
}

}  // namespace tierd
