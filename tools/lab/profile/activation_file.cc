#include "tools/lab/profile/activation_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/model/layout/codec.h"

namespace tierd {
namespace {

// The smallest f16 above zero: a contribution that is not 0 must not round to 0.
constexpr float kLeast = 0x1p-24F;

}  // namespace

Result<std::unique_ptr<ProfileFile>> ActivationFile::create(const std::string& path, const std::string& model,
                                                            const SiteTable& sites, uint64_t tokens) {
  std::vector<SafetensorsEntry> entries;
  std::vector<std::optional<size_t>> entry(sites.size());
  for (SiteId s = 0; s < sites.size(); ++s) {
    if (!sites[s].contribution.there()) continue;
    entry[s] = entries.size();
    entries.push_back({sites[s].name + ".x", "F16", {tokens, sites[s].n_in}});
    entries.push_back({sites[s].name + ".contribution", "F16", {tokens, sites[s].n}});
  }
  TIERD_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(path, entries, {{kMadeFor, model}}));
  std::unique_ptr<ActivationFile> file(new ActivationFile(std::move(writer), sites));
  file->entry_ = std::move(entry);
  return std::unique_ptr<ProfileFile>(std::move(file));
}

ActivationFile::ActivationFile(SafetensorsWriter writer, const SiteTable& sites)
    : writer_(std::move(writer)), sites_(sites), rows_(sites.size(), 0) {}

void ActivationFile::measured(SiteId site, const MeasuredPass& pass) {
  if (!status_.ok() || !entry_[site]) return;
  const uint64_t first = rows_[site];
  rows_[site] += pass.rows;
  status_ = write(*entry_[site], pass.x, pass.rows, sites_[site].n_in, first);
  if (!status_.ok()) return;
  std::vector<float> contribution(pass.contribution,
                                  pass.contribution + uint64_t{pass.rows} * sites_[site].n);
  for (float& value : contribution) value = value == 0 ? 0 : std::max(value, kLeast);
  status_ = write(*entry_[site] + 1, contribution.data(), pass.rows, sites_[site].n, first);
}

Status ActivationFile::write(size_t entry, const float* values, uint32_t rows, uint32_t columns,
                             uint64_t first_row) {
  const uint64_t n = uint64_t{rows} * columns;
  encoded_.resize(encoded_bytes(Encoding::f16, 1) * n);
  encode(Encoding::f16, {values, n}, encoded_);
  return writer_.write(entry, first_row * columns * encoded_bytes(Encoding::f16, 1), encoded_);
}

Status ActivationFile::finish() {
  TIERD_TRY(status_);
  return writer_.finish();
}

}  // namespace tierd
