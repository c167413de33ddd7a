// Records the inputs and the fired neurons of a model's networks over a text: the training data of predictors
// (tier-train). For each measurable site SITE a safetensors file holds
//
//   SITE.x             [tokens x n_in]     F16  its inputs
//   SITE.contribution  [tokens x neurons]  F16  each neuron's Site::contribution; 0: it does not fire
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/lab/profile/profile_file.h"
#include "tools/lab/safetensors/safetensors_writer.h"

namespace tierd {

// Observes a run in which every pass is measured, and writes the measurements. `model`: its shape_text.
// `sites` must outlive the file.
class ActivationFile final : public ProfileFile {
 public:
  // `tokens`: the capacity of the file.
  static Result<std::unique_ptr<ProfileFile>> create(const std::string& path, const std::string& model,
                                                     const SiteTable& sites, uint64_t tokens);
  void measured(SiteId site, const MeasuredPass& pass) override;
  Status finish() override;

 private:
  ActivationFile(SafetensorsWriter writer, const SiteTable& sites);
  Status write(size_t entry, const float* values, uint32_t rows, uint32_t columns, uint64_t first_row);

  SafetensorsWriter writer_;
  const SiteTable& sites_;
  std::vector<std::optional<size_t>> entry_;  // [sites] the first of its two entries
  std::vector<uint64_t> rows_;                // [sites] written so far
  std::vector<std::byte> encoded_;
  Status status_;
};

}  // namespace tierd
