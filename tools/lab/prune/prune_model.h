// Prunes and smooths a whole model, one layer at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/tensor_source.h"
#include "tools/lab/prune/pattern.h"
#include "tools/lab/prune/pruned_source.h"

namespace tierd {

enum class PruneMethod : uint8_t { magnitude, wanda, sparsegpt };

struct PruneOptions {
  std::optional<PruneMethod> method;  // none: only smoothing
  Pattern pattern;
  std::optional<float> smooth;  // SmoothQuant's strength of migration, from 0 to 1
  uint32_t threads = 1;
  bool quiet = false;  // no progress

  bool needs_calibration() const { return smooth || (method && *method != PruneMethod::magnitude); }
};

// Checks whether the model can be pruned so, before any work. Errors: unsupported (a mixture of experts),
// invalid_argument (rows that do not divide into the pattern's groups), each naming the model.
Status check_prunable(const TensorSource& source, const PruneOptions& options);

// Returns the model with the matrices of its layers (q, k, v, o, gate, up, down) pruned; embedding, head and
// norms stay. `windows` are the token ids of the calibration, each from an empty context, within the model's
// vocabulary and context; empty if no method needs them. Each layer computes them twice: unchanged, for the
// inputs of its operators; then pruned, for the input of the next layer, as in the published programs.
// Smoothing follows, with the activations of the pruned layer: the methods then judge the model's own weights
// (Wanda's |W| ||X|| and SparseGPT's error are the same after smoothing, magnitude is not), max|W_j| is over
// the remaining weights, and zeros stay.
//
// Memory: one layer's weights twice in f32, 4 d_model bytes a token, and for SparseGPT 4 bytes a pair of
// channels of each input, and 8 more of one. A nameless file beside `path` holds the pruned weights; it and
// `source` are in use as long as the result exists. Errors: those of check_prunable, of reading, of writing.
Result<std::unique_ptr<PrunedSource>> prune_model(const TensorSource& source,
                                                  const std::vector<std::vector<uint32_t>>& windows,
                                                  const PruneOptions& options, const std::string& path);

}  // namespace tierd
