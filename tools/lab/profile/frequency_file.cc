#include "tools/lab/profile/frequency_file.h"

#include <algorithm>
#include <span>
#include <utility>

namespace tierd {

Result<std::unique_ptr<ProfileFile>> FrequencyFile::create(const std::string& path, const std::string& model,
                                                           const SiteTable& sites) {
  std::vector<SafetensorsEntry> entries;
  for (const Site& site : sites) {
    if (!site.contribution.there()) continue;
    entries.push_back({site.name + ".frequency", "F32", {site.n}});
    entries.push_back({site.name + ".bytes", "F32", {1}});
  }
  TIERD_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(path, entries, {{kMadeFor, model}}));
  return std::unique_ptr<ProfileFile>(new FrequencyFile(std::move(writer), sites));
}

FrequencyFile::FrequencyFile(SafetensorsWriter writer, const SiteTable& sites)
    : writer_(std::move(writer)), sites_(sites), rows_(sites.size(), 0) {
  for (const Site& site : sites) fired_.emplace_back(site.n, 0);
}

void FrequencyFile::measured(SiteId site, const MeasuredPass& pass) {
  if (!sites_[site].contribution.there()) return;
  const uint32_t n = sites_[site].n;
  for (uint32_t row = 0; row < pass.rows; ++row) {
    const float* const contribution = pass.contribution + uint64_t{row} * n;
    for (uint32_t i = 0; i < n; ++i) fired_[site][i] += contribution[i] != 0 ? 1 : 0;
  }
  rows_[site] += pass.rows;
}

Status FrequencyFile::finish() {
  for (SiteId site = 0; site < sites_.size(); ++site) {
    if (!sites_[site].contribution.there()) continue;
    const auto rows = static_cast<double>(std::max<uint64_t>(1, rows_[site]));
    std::vector<float> frequency;
    for (const uint64_t fired : fired_[site])
      frequency.push_back(static_cast<float>(static_cast<double>(fired) / rows));
    TIERD_TRY(writer_.append(std::as_bytes(std::span(frequency))));
    // A slot is a multiple of 64 bytes, so F32 represents it exactly.
    const auto bytes = static_cast<float>(sites_.best_of(site).slot_bytes);
    TIERD_TRY(writer_.append(std::as_bytes(std::span(&bytes, 1))));
  }
  return writer_.finish();
}

}  // namespace tierd
