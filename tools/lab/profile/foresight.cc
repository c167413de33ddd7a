#include "tools/lab/profile/foresight.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/model/layout/cut.h"

namespace tierd {
namespace {

// Returns at how many levels the channel number `order` of `n`, by rising magnitude, is used.
uint32_t levels_of(uint32_t order, uint32_t n) {
  return std::min<uint32_t>(Foresight::kLevels, order * (Foresight::kLevels + 1) / n);
}

}  // namespace

Foresight::Foresight(const SiteTable& sites, uint32_t distances)
    : sites_(sites), distances_(distances), pairs_(sites.size() * distances), losses_(sites.size()) {
  for (Pair& pair : pairs_) {
    pair.used.assign(kLevels, 0);
    pair.found.assign(kLevels, 0);
  }
  for (Loss& loss : losses_) loss.shares.assign(kShares, 0);
}

void Foresight::measured(SiteId number, const MeasuredPass& pass) {
  const Site& site = sites_[number];
  if (site.label != kCutNumber<Columns>) return;
  const uint32_t rows = std::min(pass.rows, kRowsAtOnce);
  const uint32_t n = site.n;
  Seen now{number, std::vector<float>(uint64_t{rows} * n), std::vector<uint32_t>(uint64_t{rows} * n)};
  std::vector<uint32_t> by_magnitude(n);
  Loss& loss = losses_[number];
  for (uint32_t r = 0; r < rows; ++r) {
    const uint64_t from = uint64_t{r} * pass.rows / rows;
    float* const x = now.x.data() + uint64_t{r} * n;
    std::copy_n(pass.x + from * n, n, x);
    std::iota(by_magnitude.begin(), by_magnitude.end(), 0u);
    std::ranges::sort(by_magnitude, [x](uint32_t a, uint32_t b) {
      return std::pair(std::abs(x[a]), a) < std::pair(std::abs(x[b]), b);
    });
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t channel = by_magnitude[i];
      now.order[uint64_t{r} * n + channel] = x[channel] == 0 ? 0 : i;  // zeros are never used
    }

    const float* const gives = pass.contribution + from * n;
    double all = 0;
    for (uint32_t i = 0; i < n; ++i) all += double{gives[i]} * gives[i];
    if (all == 0) continue;
    double so_far = 0;
    uint32_t next = 0;
    for (uint32_t percent = 0; percent < kShares; ++percent) {
      const auto end = static_cast<uint32_t>(uint64_t{n} * percent / (kShares - 1));
      for (; next < end; ++next) so_far += double{gives[by_magnitude[next]]} * gives[by_magnitude[next]];
      loss.shares[percent] += so_far / all;
    }
    ++loss.rows;
  }
  if (site.of_expert()) return;  // the next layers' experts are other experts
  std::vector<Seen>& earlier = earlier_[site.op_group];
  std::erase_if(earlier, [&](const Seen& seen) {
    const uint16_t layer = sites_[seen.site].layer;
    return layer >= site.layer ||
           uint32_t{site.layer} - layer > distances_;  // of the previous step, or too far apart
  });
  for (const Seen& before : earlier) compare(before, now, site.layer - sites_[before.site].layer);
  earlier.push_back(std::move(now));
}

void Foresight::compare(const Seen& before, const Seen& now, uint32_t distance) {
  const uint32_t n = sites_[now.site].n;
  if (before.x.size() != now.x.size()) return;
  Pair& pair = this->pair(before.site, distance);
  std::vector<uint64_t> used(kLevels + 1);  // by the highest level at which a channel is used
  std::vector<uint64_t> both(kLevels + 1);
  for (uint64_t row = 0; row * n < now.x.size(); ++row) {
    double product = 0, a = 0, b = 0;
    for (uint64_t i = row * n; i < (row + 1) * n; ++i) {
      product += double{before.x[i]} * now.x[i];
      a += double{before.x[i]} * before.x[i];
      b += double{now.x[i]} * now.x[i];
      ++used[levels_of(before.order[i], n)];
      ++both[levels_of(std::min(before.order[i], now.order[i]), n)];
    }
    pair.cosine += a == 0 || b == 0 ? 0 : product / std::sqrt(a * b);
    ++pair.rows;
  }
  // A channel that is used at a level is used at all lower levels.
  for (uint32_t level = kLevels; level-- > 0;) {
    used[level] += used[level + 1];
    both[level] += both[level + 1];
    pair.used[level] += used[level + 1];
    pair.found[level] += both[level + 1];
  }
}

float Foresight::precision(SiteId site, uint32_t distance, uint32_t level) const {
  const Pair& of = pair(site, distance);
  if (of.used[level] == 0) return 0;
  return static_cast<float>(static_cast<double>(of.found[level]) / static_cast<double>(of.used[level]));
}

float Foresight::similarity(SiteId site, uint32_t distance) const {
  const Pair& of = pair(site, distance);
  return of.rows == 0 ? 0 : static_cast<float>(of.cosine / static_cast<double>(of.rows));
}

float Foresight::lost(SiteId site, uint32_t percent) const {
  const Loss& of = losses_[site];
  return of.rows == 0 ? 0 : static_cast<float>(of.shares[percent] / static_cast<double>(of.rows));
}

}  // namespace tierd
