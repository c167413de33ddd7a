// The arguments of tier-convert that prune and smooth.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "tools/command_line/command_line.h"
#include "tools/lab/prune/prune_model.h"

namespace tierd {

class PruneArguments {
 public:
  // Adds them to a command line that has not been parsed; lives until it has.
  void add_to(CommandLine& line);

  bool given() const;  // any of them
  // What they ask for. Errors: invalid_argument naming the argument.
  Result<PruneOptions> options() const;

  // The windows of the calibration text by the model's tokenizer, each of at most the model's context; none
  // where the options need none. Errors: not_found (no tokenizer), those of the file, invalid_argument (too
  // short).
  Result<std::vector<std::vector<uint32_t>>> windows(const TensorSource& source,
                                                     const PruneOptions& options) const;

 private:
  std::string method_, groups_, calibration_;
  double sparsity_ = 0.5;
  double smooth_ = 0.5;
  uint64_t tokens_ = 32768;
  std::optional<Argument> method_argument_, sparsity_argument_, smooth_argument_, calibration_argument_;
  std::vector<Argument> arguments_;
};

}  // namespace tierd
