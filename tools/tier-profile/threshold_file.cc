#include "tools/tier-profile/threshold_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace tierd {
namespace {

// Sign, exponent and the seven bits behind it are what is left.
constexpr uint32_t kDropped = 16;

bool is_cut(const Site& site) {
  return site.axis == Axis::channel;
}

}  // namespace

void Magnitudes::add(float value) {
  const float magnitude = std::abs(value);
  const uint32_t bin = std::bit_cast<uint32_t>(magnitude) >> kDropped;
  if (bin >= counts_.size()) counts_.resize(bin + 1);
  ++counts_[bin];
  ++seen_;
  largest_ = std::max(largest_, magnitude);
}

// Inside a bin, values are taken to be spread evenly.
float Magnitudes::quantile(double share) const {
  const double wanted = share * static_cast<double>(seen_);
  double before = 0;
  for (uint32_t bin = 0; bin < counts_.size(); ++bin) {
    const auto here = static_cast<double>(counts_[bin]);
    if (here == 0 || before + here < wanted) {
      before += here;
      continue;
    }
    const auto low = std::bit_cast<float>(bin << kDropped);
    const auto high = std::bit_cast<float>((bin + 1) << kDropped);
    // Zeros are a bin of their own: what a ReLU cuts off is zero, not nearly.
    if (bin == 0) return 0;
    return std::min(largest_, low + static_cast<float>((wanted - before) / here) * (high - low));
  }
  return largest_;
}

Result<std::unique_ptr<ProfileFile>> ThresholdFile::create(const std::string& path,
                                                           const std::vector<Site>& sites) {
  std::vector<SafetensorsEntry> entries;
  for (const Site& site : sites) {
    if (is_cut(site)) entries.push_back({site.name + ".thresholds", "F32", {kThresholds}});
  }
  TIERD_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(path, entries));
  return std::unique_ptr<ProfileFile>(new ThresholdFile(std::move(writer), sites));
}

ThresholdFile::ThresholdFile(SafetensorsWriter writer, const std::vector<Site>& sites)
    : writer_(std::move(writer)), sites_(sites), magnitudes_(sites.size()) {}

void ThresholdFile::measured(SiteId site, const MeasuredPass& pass) {
  if (!is_cut(sites_[site])) return;
  for (uint64_t i = 0; i < uint64_t{pass.rows} * sites_[site].n_in; ++i) magnitudes_[site].add(pass.x[i]);
}

Status ThresholdFile::finish() {
  for (SiteId site = 0; site < sites_.size(); ++site) {
    if (!is_cut(sites_[site])) continue;
    std::vector<float> quantiles;
    for (uint32_t i = 0; i < kThresholds; ++i)
      quantiles.push_back(magnitudes_[site].quantile(static_cast<double>(i) / (kThresholds - 1)));
    TIERD_TRY(writer_.append(std::as_bytes(std::span(quantiles))));
  }
  return writer_.finish();
}

}  // namespace tierd
