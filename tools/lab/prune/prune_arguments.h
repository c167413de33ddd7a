// The arguments of tier-prune for pruning and smoothing.
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
  // Adds the arguments to a command line that has not been parsed; must live until it is parsed.
  void add_to(CommandLine& line);

  // Returns the options. Errors: invalid_argument naming the argument.
  Result<PruneOptions> options() const;

  // Returns the windows of the calibration text by the model's tokenizer, each of at most the model's
  // context; empty if the options need none. Errors: not_found (no tokenizer), those of the file,
  // invalid_argument (too short).
  Result<std::vector<std::vector<uint32_t>>> windows(const TensorSource& source,
                                                     const PruneOptions& options) const;

 private:
  std::string method_, groups_, calibration_;
  double sparsity_ = 0.5;
  double smooth_ = 0.5;
  uint64_t tokens_ = 32768;
  uint32_t threads_ = 0;
  std::optional<Argument> method_argument_, sparsity_argument_, smooth_argument_;
};

}  // namespace tierd
