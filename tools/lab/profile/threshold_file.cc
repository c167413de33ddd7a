#include "tools/lab/profile/threshold_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "core/model/layout/cut.h"

namespace tierd {
namespace {

// Keeps sign, exponent and the seven bits behind it.
constexpr uint32_t kDropped = 16;

constexpr uint32_t kMostDistances = 16;
constexpr uint32_t kHalf = 4;  // the level of sparsity 0.5
constexpr uint32_t kShown[] = {1, 2, 4, 8};

bool is_cut(const Site& site) {
  return site.label == kCutNumber<Columns>;
}

// Returns the largest number of layers between compared operators.
uint32_t distances_of(const SiteTable& sites) {
  uint32_t last = 0;
  for (const Site& site : sites) last = std::max<uint32_t>(last, is_cut(site) ? site.layer : 0);
  return std::clamp(last, 1u, kMostDistances);
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

// Values are assumed to be evenly distributed inside a bin.
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
    // Zeros are a bin of their own: a ReLU's cut-off values are exactly zero.
    if (bin == 0) return 0;
    return std::min(largest_, low + static_cast<float>((wanted - before) / here) * (high - low));
  }
  return largest_;
}

Result<std::unique_ptr<ProfileFile>> ThresholdFile::create(const std::string& path, const std::string& model,
                                                           const SiteTable& sites) {
  std::vector<SafetensorsEntry> entries;
  for (const Site& site : sites) {
    if (!is_cut(site)) continue;
    entries.push_back({site.name + ".thresholds", "F32", {kThresholds}});
    entries.push_back({site.name + ".lost", "F32", {Foresight::kShares}});
    entries.push_back({site.name + ".rates", "F32", {site.n_in}});
    entries.push_back({site.name + ".ahead", "F32", {distances_of(sites) * Foresight::kLevels}});
  }
  TIERD_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(path, entries, {{kMadeFor, model}}));
  return std::unique_ptr<ProfileFile>(new ThresholdFile(std::move(writer), sites));
}

ThresholdFile::ThresholdFile(SafetensorsWriter writer, const SiteTable& sites)
    : writer_(std::move(writer)),
      sites_(sites),
      magnitudes_(sites.size()),
      among_larger_(sites.size()),
      tokens_(sites.size()),
      foresight_(sites, distances_of(sites)) {}

void ThresholdFile::measured(SiteId site, const MeasuredPass& pass) {
  if (!is_cut(sites_[site])) return;
  for (uint64_t i = 0; i < uint64_t{pass.rows} * sites_[site].n_in; ++i) magnitudes_[site].add(pass.x[i]);
  for (uint32_t row = 0; row < pass.rows; ++row) {
    const uint64_t n = sites_[site].n_in;
    count_larger(site, {pass.x + row * n, n});
  }
  foresight_.measured(site, pass);
}

void ThresholdFile::count_larger(SiteId site, std::span<const float> x) {
  order_.resize(x.size());
  std::iota(order_.begin(), order_.end(), 0u);
  const auto half = order_.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::ranges::nth_element(order_, half, std::greater(), [&](uint32_t i) { return std::abs(x[i]); });
  among_larger_[site].resize(x.size());
  std::for_each(order_.begin(), half, [&](uint32_t i) { ++among_larger_[site][i]; });
  ++tokens_[site];
}

Status ThresholdFile::finish() {
  for (SiteId site = 0; site < sites_.size(); ++site) {
    if (!is_cut(sites_[site])) continue;
    std::vector<float> quantiles;
    for (uint32_t i = 0; i < kThresholds; ++i)
      quantiles.push_back(magnitudes_[site].quantile(static_cast<double>(i) / (kThresholds - 1)));
    TIERD_TRY(writer_.append(std::as_bytes(std::span(quantiles))));
    std::vector<float> lost;
    for (uint32_t percent = 0; percent < Foresight::kShares; ++percent)
      lost.push_back(foresight_.lost(site, percent));
    TIERD_TRY(writer_.append(std::as_bytes(std::span(lost))));
    std::vector<float> rates(sites_[site].n_in);
    for (size_t i = 0; i < among_larger_[site].size(); ++i)
      rates[i] = static_cast<float>(among_larger_[site][i]) / static_cast<float>(tokens_[site]);
    TIERD_TRY(writer_.append(std::as_bytes(std::span(rates))));
    std::vector<float> ahead;
    for (uint32_t distance = 1; distance <= foresight_.distances(); ++distance) {
      for (uint32_t level = 0; level < Foresight::kLevels; ++level)
        ahead.push_back(foresight_.precision(site, distance, level));
    }
    TIERD_TRY(writer_.append(std::as_bytes(std::span(ahead))));
  }
  return writer_.finish();
}

std::string ThresholdFile::report() const {
  std::string text =
      "at sparsity 0.5, of the channels that an operator uses, the share that it uses so many layers later "
      "(and the\n"
      "cosine of its inputs); in the last column what is lost of its result:\n";
  text += fmt::format("{:<18}", "operator");
  for (const uint32_t distance : kShown) text += fmt::format("{:>14}", distance);
  text += fmt::format("{:>9}\n", "lost");
  for (SiteId site = 0; site < sites_.size(); ++site) {
    if (!is_cut(sites_[site])) continue;
    text += fmt::format("{:<18}", sites_[site].name);
    for (const uint32_t distance : kShown) {
      const float precision =
          distance > foresight_.distances() ? 0 : foresight_.precision(site, distance, kHalf);
      text += precision == 0
                  ? fmt::format("{:>14}", "")
                  : fmt::format("   {:>4.2f} ({:>4.2f})", precision, foresight_.similarity(site, distance));
    }
    text += fmt::format("{:>7.2f} %\n", 100 * foresight_.lost(site, (kHalf + 1) * 10));
  }
  return text;
}

}  // namespace tierd
