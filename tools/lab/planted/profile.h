// What is planted into a model's weights: shares of active neurons, the errors of a predictor, how alike
// neighbouring tokens are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// The keys of the file, by section. Shares lie between 0 and 1.
struct PlantedProfile {
  std::string name;

  // [activity]: of the neurons of a layer, the truly active ones.
  double first = 0;
  double middle = 0;
  double last = 0;
  double mean = 0;

  // [predictor]
  double false_negatives = 0;   // of the active neurons
  double false_positives = 0;   // of the inactive neurons
  double threshold_spread = 0;  // tau': deviation of the thresholds over that of the scores
  uint32_t rank = 0;
  uint32_t last_rank = 0;
  double last_share = 0;  // of the layers, those with the last rank

  // [text]
  double document_share = 0;  // of an embedding's variance
  double run_share = 0;
  double run_length = 0;  // tokens, on the mean

  // [network]
  double norm_shift = 0;  // c
  double ffn_variance = 0;
  double attention_variance = 0;
  double score_variance = 0;
  double position_variance = 0;
};

// `name`: "flash", looked up in the folder planted/ beside the shapes (core/model/shape_file.h), or the path
// of a file ending in .toml. Every key has to be there. Errors: not_found (with the profiles there are),
// invalid_argument naming file, line and key.
Result<PlantedProfile> read_planted_profile(const std::string& name);

std::filesystem::path planted_profiles_folder();

// The names that read_planted_profile knows, sorted.
std::vector<std::string> known_planted_profiles();

}  // namespace tierd
