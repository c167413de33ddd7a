// The planted statistics of a model's weights: shares of active neurons, the errors of a predictor, the
// similarity of neighbouring tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// The keys of the file, by section. Shares are between 0 and 1.
struct PlantedProfile {
  std::string name;

  // [activity]: share of truly active neurons in the first, the middle and the last layer, and on the mean.
  double first = 0;
  double middle = 0;
  double last = 0;
  double mean = 0;

  // [predictor]
  double false_negatives = 0;   // share of the active neurons
  double false_positives = 0;   // share of the inactive neurons
  double threshold_spread = 0;  // tau': deviation of the thresholds / deviation of the scores
  uint32_t rank = 0;
  uint32_t last_rank = 0;
  double last_share = 0;  // share of the layers, the last ones, whose predictor has last_rank

  // [text]
  double document_share = 0;  // share of an embedding's variance
  double run_share = 0;
  double run_length = 0;  // mean, in tokens

  // [network]
  double norm_shift = 0;  // c
  double ffn_variance = 0;
  double attention_variance = 0;
  double score_variance = 0;
  double position_variance = 0;
};

// Reads a profile. `name`: "flash", a file of the folder planted/ beside the shapes
// (core/model/shape_file.h), or the path of a file ending in .toml. Every key is required. Errors: not_found
// (listing the profiles), invalid_argument naming file, line and key.
Result<PlantedProfile> read_planted_profile(const std::string& name);

std::filesystem::path planted_profiles_folder();

// Returns the names that read_planted_profile knows, sorted.
std::vector<std::string> known_planted_profiles();

}  // namespace tierd
