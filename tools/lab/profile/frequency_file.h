// Records how often each neuron fires over a text: tier-partition uses it to choose the neurons of a GPU. For
// each measurable site SITE a safetensors file holds
//
//   SITE.frequency  [neurons]  F32  the share of the tokens for which it fires
//   SITE.bytes      [1]        F32  the slot bytes of a neuron, in the site's best edition
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/lab/profile/profile_file.h"
#include "tools/lab/safetensors/safetensors_writer.h"

namespace tierd {

// `model`: its shape_text. `sites` must outlive the file.
class FrequencyFile final : public ProfileFile {
 public:
  static Result<std::unique_ptr<ProfileFile>> create(const std::string& path, const std::string& model,
                                                     const SiteTable& sites);
  void measured(SiteId site, const MeasuredPass& pass) override;
  Status finish() override;

 private:
  FrequencyFile(SafetensorsWriter writer, const SiteTable& sites);

  SafetensorsWriter writer_;
  const SiteTable& sites_;
  std::vector<std::vector<uint64_t>> fired_;  // [sites][neurons]
  std::vector<uint64_t> rows_;                // [sites]
};

}  // namespace tierd
