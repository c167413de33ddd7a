#include "tools/lab/prune/prune_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "core/base/progress.h"
#include "core/base/units.h"
#include "core/system/memory_limits.h"
#include "tools/lab/prune/input_statistics.h"
#include "tools/lab/prune/inverse_hessian.h"
#include "tools/lab/prune/layer_forward.h"
#include "tools/lab/prune/masks.h"
#include "tools/lab/prune/smooth.h"
#include "tools/lab/prune/sparsegpt.h"

namespace tierd {
namespace {

// The statistics of a layer's inputs, in the order of kLayerInputs.
using LayerStatistics = std::vector<InputStatistics>;

class ModelPruner {
 public:
  ModelPruner(const TensorSource& source, const PruneOptions& options, PrunedSource& out)
      : team_(options.threads), source_(source), config_(source.config()), options_(options), out_(out) {}

  Status run(const std::vector<std::vector<uint32_t>>& windows) {
    for (const auto& window : windows) {
      TIERD_ASSIGN(TokenRows hidden, embed(source_, window));
      hidden_.push_back(std::move(hidden));
    }
    const uint64_t passes = (judges_inputs() ? 1 : 0) + (options_.needs_calibration() ? 1 : 0);
    const uint64_t steps = passes == 0 ? 1 : passes * windows.size();
    Progress progress("pruning", steps * config_.n_layers, options_.quiet,
                      passes == 0 ? "layers" : "windows");
    for (uint32_t layer = 0; layer < config_.n_layers; ++layer) {
      TIERD_ASSIGN(LayerWeights weights, read_layer(source_, layer));
      LayerStatistics statistics;
      if (judges_inputs()) statistics = observe(weights, false, progress);
      TIERD_TRY(prune(weights, statistics));
      statistics.clear();
      if (options_.needs_calibration()) statistics = observe(weights, true, progress);
      if (options_.smooth) smooth_layer(weights, statistics);
      TIERD_TRY(put(weights));
      if (passes == 0) progress.advance(1);
    }
    progress.finish();
    return {};
  }

 private:
  bool judges_inputs() const { return options_.method && *options_.method != PruneMethod::magnitude; }

  // Computes the windows through the layer. `goes_on`: the windows advance to the next layer's input; else
  // they stay, and SparseGPT's statistics are gathered.
  LayerStatistics observe(LayerWeights& weights, bool goes_on, Progress& progress) {
    const bool gram = !goes_on && options_.method == PruneMethod::sparsegpt;
    LayerStatistics statistics;
    for (const LayerInput input : kLayerInputs) statistics.emplace_back(weights.width(input), gram);
    const LayerForward forward(config_, weights, team_);
    const auto note = [&](LayerInput input, const TokenRows& x) {
      statistics[static_cast<size_t>(input)].add(x, team_);
    };
    for (TokenRows& hidden : hidden_) {
      if (goes_on) {
        forward.run(hidden, note);
      } else {
        TokenRows copy = hidden;
        forward.run(copy, note);
      }
      progress.advance(1);
    }
    return statistics;
  }

  Status prune(LayerWeights& weights, LayerStatistics& statistics) {
    if (!options_.method) return {};
    for (const LayerInput input : kLayerInputs) {
      const auto readers = weights.readers(input);
      if (*options_.method == PruneMethod::magnitude) {
        for (LinearWeights* linear : readers) prune_by_magnitude(linear->weight, options_.pattern);
        continue;
      }
      InputStatistics& seen = statistics[static_cast<size_t>(input)];
      if (*options_.method == PruneMethod::wanda) {
        const std::vector<float> norms = seen.norms();
        if (!std::ranges::all_of(norms, [](float norm) { return std::isfinite(norm); }))
          return Error{Code::invalid_argument, fmt::format("{}: {}", source_.path(), readers.front()->name),
                       "its inputs on the calibration text are not finite; the model may be damaged"};
        for (LinearWeights* linear : readers) prune_by_wanda(linear->weight, norms, options_.pattern);
        continue;
      }
      TIERD_ASSIGN(const InverseHessian inverse,
                   invert_hessian(seen.take_gram(), seen.width(), seen.windows(),
                                  fmt::format("{}: {}", source_.path(), readers.front()->name)));
      for (LinearWeights* linear : readers)
        prune_by_sparsegpt(linear->weight, inverse, options_.pattern, team_);
    }
    return {};
  }

  // o and down read no norm, so they are not changed (SmoothQuant, section 4).
  void smooth_layer(LayerWeights& weights, const LayerStatistics& statistics) {
    auto readers = weights.readers(LayerInput::attention);
    const auto network = weights.readers(LayerInput::network);
    const auto& of_network = statistics[static_cast<size_t>(LayerInput::network)].largest();
    if (config_.ffn_norm) {
      smooth(weights.ffn_norm, network, of_network, *options_.smooth);
    } else {  // all of them read one norm
      readers.insert(readers.end(), network.begin(), network.end());
    }
    smooth(weights.attn_norm, readers, statistics[static_cast<size_t>(LayerInput::attention)].largest(),
           *options_.smooth);
  }

  Status put(LayerWeights& weights) {
    for (const LayerInput input : kLayerInputs) {
      for (const LinearWeights* linear : weights.readers(input))
        TIERD_TRY(out_.put(linear->name, linear->weight));
    }
    if (!options_.smooth) return {};
    for (const NormWeights* norm : {&weights.attn_norm, &weights.ffn_norm}) {
      if (!norm->weight.empty()) TIERD_TRY(out_.put(norm->name, norm->weight));
      if (!norm->bias.empty()) TIERD_TRY(out_.put(norm->name + ".bias", norm->bias));
    }
    return {};
  }

  MatrixTeam team_;  // first, because it is aligned to cache lines
  const TensorSource& source_;
  const ModelConfig& config_;
  const PruneOptions& options_;
  PrunedSource& out_;
  std::vector<TokenRows> hidden_;  // of each window, [tokens x d_model]
};

// Estimates the peak memory; all layers are alike.
uint64_t bytes_needed(const TensorSource& source, const PruneOptions& options, uint64_t tokens) {
  uint64_t weights = 0;
  for (const std::string& name : layer_matrices(source, 0)) {
    const TensorInfo& tensor = *source.find(name);
    weights += tensor.rows * tensor.cols;
  }
  if (!options.needs_calibration()) return 2 * weights * sizeof(float);
  const ModelConfig& config = source.config();
  const uint64_t squares[] = {uint64_t{config.d_model} * config.d_model,
                              uint64_t{config.q_dim()} * config.q_dim(),
                              uint64_t{config.d_model} * config.d_model, uint64_t{config.d_ff} * config.d_ff};
  const bool gram = options.method == PruneMethod::sparsegpt;
  const uint64_t grams = gram ? std::accumulate(std::begin(squares), std::end(squares), uint64_t{0}) : 0;
  const uint64_t inverse = gram ? *std::ranges::max_element(squares) : 0;
  return (2 * weights + tokens * config.d_model + grams) * sizeof(float) + inverse * sizeof(double);
}

Status check_memory(const TensorSource& source, const PruneOptions& options, uint64_t tokens) {
  const uint64_t needed = bytes_needed(source, options, tokens);
  const MemoryLimit left = memory_left();
  if (needed <= left.left_bytes) return {};
  return Error{Code::no_space, source.path(),
               fmt::format("pruning a layer takes {} with {} tokens of calibration text, but {} leaves {}",
                           format_bytes(static_cast<double>(needed)), tokens, left.source,
                           format_bytes(static_cast<double>(left.left_bytes)))};
}

}  // namespace

Status check_prunable(const TensorSource& source, const PruneOptions& options) {
  const ModelConfig& config = source.config();
  if (config.is_mixture()) {
    return Error{Code::unsupported, source.path(),
                 "is a mixture of experts, which cannot be pruned or smoothed; expected a model with one "
                 "network a layer"};
  }
  if (!has_plain_layers(config)) {
    return Error{
        Code::unsupported, source.path(),
        fmt::format(
            "the layers of {} cannot be pruned or smoothed; expected norms of the inputs of attention "
            "and network alone, results that are added as they are, and one kind of attention",
            config.architecture)};
  }
  if (!options.method || !options.pattern.in_groups()) return {};
  for (const std::string& name : layer_matrices(source, 0)) {
    const uint64_t cols = source.find(name)->cols;
    if (cols % options.pattern.group == 0) continue;
    return Error{Code::invalid_argument, source.path(),
                 fmt::format("the rows of {} have {} inputs, expected a multiple of the {} of --nm", name,
                             cols, options.pattern.group)};
  }
  return {};
}

Result<std::unique_ptr<PrunedSource>> prune_model(const TensorSource& source,
                                                  const std::vector<std::vector<uint32_t>>& windows,
                                                  const PruneOptions& options, const std::string& path) {
  TIERD_TRY(check_prunable(source, options));
  uint64_t tokens = 0;
  for (const auto& window : windows) tokens += window.size();
  TIERD_TRY(check_memory(source, options, tokens));
  std::vector<std::string> replaced;
  for (uint32_t layer = 0; layer < source.config().n_layers; ++layer) {
    for (std::string& name : layer_matrices(source, layer)) replaced.push_back(std::move(name));
    if (!options.smooth) continue;
    for (const char* norm : {"attn_norm", "attn_norm.bias", "ffn_norm", "ffn_norm.bias"}) {
      std::string name = fmt::format("layers.{}.{}", layer, norm);
      if (source.find(name) != nullptr) replaced.push_back(std::move(name));
    }
  }
  TIERD_ASSIGN(auto pruned, PrunedSource::create(source, replaced, path));
  TIERD_TRY(ModelPruner(source, options, *pruned).run(windows));
  return pruned;
}

}  // namespace tierd
