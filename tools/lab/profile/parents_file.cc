#include "tools/lab/profile/parents_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

#include "core/base/progress.h"

namespace tierd {
namespace {

constexpr uint32_t kParents = 2;
constexpr uint32_t kAtOnce = 256;  // neurons between two updates of the progress

std::vector<SiteId> sites_that_tell(const SiteTable& sites) {
  std::vector<SiteId> told;
  for (SiteId site = 0; site < sites.size(); ++site) {
    if (sites[site].contribution.there()) told.push_back(site);
  }
  return told;
}

// Returns the correlation of two events, of which `a` and `b` of n have occurred, and `both` together; 0 if
// one of them always or never occurs.
double correlation(double n, double a, double b, double both) {
  const double spread = a * (n - a) * b * (n - b);
  return spread > 0 ? (n * both - a * b) / std::sqrt(spread) : 0;
}

}  // namespace

uint64_t FiringBits::together(uint32_t neuron, const FiringBits& others, uint32_t other) const {
  const uint64_t* const own = &bits_[neuron * words_];
  const uint64_t* const its = &others.bits_[other * words_];
  uint64_t both = 0;
  for (uint64_t w = 0; w < words_; ++w) both += static_cast<uint64_t>(std::popcount(own[w] & its[w]));
  return both;
}

std::vector<float> parents_of(const FiringBits& site, const FiringBits& before, uint64_t tokens,
                              uint32_t first, uint32_t last) {
  const auto n = static_cast<double>(tokens);
  std::vector<float> parents;
  for (uint32_t child = first; child < last; ++child) {
    struct Parent {
      double correlation = 0;
      float number = -1;
    };
    Parent best[kParents];
    for (uint32_t i = 0; i < before.neurons() && site.fired(child) != 0; ++i) {
      if (before.fired(i) == 0) continue;
      const Parent parent{
          correlation(n, static_cast<double>(site.fired(child)), static_cast<double>(before.fired(i)),
                      static_cast<double>(site.together(child, before, i))),
          static_cast<float>(i)};
      if (parent.correlation > best[0].correlation) {
        best[1] = std::exchange(best[0], parent);
      } else if (parent.correlation > best[1].correlation) {
        best[1] = parent;
      }
    }
    for (const Parent& parent : best) parents.push_back(parent.number);
  }
  return parents;
}

Result<std::unique_ptr<ProfileFile>> ParentsFile::create(const std::string& path, const std::string& model,
                                                         const SiteTable& sites, uint64_t tokens,
                                                         bool quiet) {
  std::vector<SafetensorsEntry> entries;
  const std::vector<SiteId> told = sites_that_tell(sites);
  for (size_t k = 1; k < told.size(); ++k)
    entries.push_back({sites[told[k]].name + ".parents", "F32", {uint64_t{kParents} * sites[told[k]].n}});
  TIERD_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(path, entries, {{kMadeFor, model}}));
  return std::unique_ptr<ProfileFile>(new ParentsFile(std::move(writer), sites, tokens, quiet));
}

ParentsFile::ParentsFile(SafetensorsWriter writer, const SiteTable& sites, uint64_t tokens, bool quiet)
    : writer_(std::move(writer)),
      sites_(sites),
      quiet_(quiet),
      told_(sites_that_tell(sites)),
      passed_(told_.size()) {
  for (const SiteId site : told_) bits_.emplace_back(sites[site].n, tokens);
}

void ParentsFile::measured(SiteId site, const MeasuredPass& pass) {
  const auto told = std::ranges::find(told_, site);
  if (told == told_.end()) return;
  const auto k = static_cast<size_t>(told - told_.begin());
  const uint32_t n = sites_[site].n;
  for (uint32_t row = 0; row < pass.rows; ++row) {
    for (uint32_t i = 0; i < n; ++i) {
      if (pass.contribution[uint64_t{row} * n + i] != 0) bits_[k].mark(i, passed_[k] + row);
    }
  }
  passed_[k] += pass.rows;
}

Status ParentsFile::finish() {
  uint64_t neurons = 0;
  for (size_t k = 1; k < told_.size(); ++k) neurons += sites_[told_[k]].n;
  Progress progress("correlating", neurons, quiet_, "neurons");
  for (size_t k = 1; k < told_.size(); ++k) {
    const uint32_t n = sites_[told_[k]].n;
    for (uint32_t first = 0; first < n; first += kAtOnce) {
      const uint32_t last = std::min(n, first + kAtOnce);
      const std::vector<float> parents = parents_of(bits_[k], bits_[k - 1], passed_[k], first, last);
      TIERD_TRY(writer_.append(std::as_bytes(std::span(parents))));
      progress.advance(last - first);
    }
  }
  progress.finish();
  return writer_.finish();
}

}  // namespace tierd
