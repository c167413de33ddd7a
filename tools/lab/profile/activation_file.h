// What the networks of a model compute from and which of their neurons fire, over a text: what predictors are
// trained on (tier-train). For each site SITE that can tell, a safetensors file holds
//
//   SITE.x             [tokens x n_in]     F16  what it computes from
//   SITE.contribution  [tokens x neurons]  F16  how much each neuron gives (Site::contribution), 0: does not
//   fire
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/safetensors_writer.h"
#include "tools/lab/profile/profile_file.h"

namespace tierd {

// Listens to a run in which every pass is measured, and writes what it hears. `model`: its shape_text.
// `sites` outlives it.
class ActivationFile final : public ProfileFile {
 public:
  // Room for so many tokens.
  static Result<std::unique_ptr<ProfileFile>> create(const std::string& path, const std::string& model,
                                                     const SiteTable& sites, uint64_t tokens);
  void measured(SiteId site, const MeasuredPass& pass) override;
  Status finish() override;

 private:
  ActivationFile(SafetensorsWriter writer, const SiteTable& sites);
  Status write(size_t entry, const float* values, uint32_t rows, uint32_t columns, uint64_t first_row);

  SafetensorsWriter writer_;
  const SiteTable& sites_;
  std::vector<std::optional<size_t>> entry_;  // [sites] the first of two
  std::vector<uint64_t> rows_;                // [sites] written so far
  std::vector<std::byte> encoded_;
  Status status_;
};

}  // namespace tierd
