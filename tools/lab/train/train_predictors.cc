#include "tools/lab/train/train_predictors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <utility>

#include "core/base/progress.h"
#include "core/formats/safetensors.h"
#include "core/model/layout/codec.h"
#include "core/store/source.h"
#include "core/system/memory_limits.h"
#include "tools/lab/safetensors/safetensors_writer.h"
#include "tools/lab/train/kept_mass.h"
#include "tools/lab/train/rank_plan.h"
#include "tools/lab/train/refused_models.h"

namespace tierd {
namespace {

std::vector<SafetensorsEntry> entries_of(const ModelConfig& config, const std::vector<uint32_t>& ranks,
                                         Encoding encoding) {
  std::vector<SafetensorsEntry> entries;
  for (uint32_t n = 0; n < config.n_layers; ++n) {
    if (ranks[n] == 0) continue;
    const std::string site = fmt::format("layers.{}.ffn", n);
    entries.push_back({site + ".a", dtype_of_encoding(encoding).value(), {ranks[n], config.d_model}});
    entries.push_back({site + ".b", dtype_of_encoding(encoding).value(), {config.d_ff, ranks[n]}});
    entries.push_back({site + ".bias", "F32", {config.d_ff}});
    entries.push_back({site + kKept, "F32", {kKeptLevels}});
  }
  return entries;
}

// Reads the rule by which neurons are active. The threshold of the activation becomes a part of the bias.
Result<Decision> read_decision(const TensorSource& source, uint32_t layer) {
  const ModelConfig& config = source.config();
  const std::string name = fmt::format("layers.{}.{}", layer, config.gated ? "gate" : "up");
  Decision decision;
  TIERD_ASSIGN(decision.weight, source.read_f32(*source.find(name)));
  decision.bias.resize(config.d_ff);
  if (config.ffn_bias) {
    TIERD_ASSIGN(decision.bias, source.read_f32(*source.find(name + ".bias")));
  }
  for (float& bias : decision.bias) bias -= config.activation_threshold;
  return decision;
}

// Appends `values` in `encoding`, and stores in `values` the numbers that a reader of the file gets.
Status write_rounded(SafetensorsWriter& writer, Encoding encoding, std::vector<float>& values) {
  std::vector<std::byte> encoded(encoded_bytes(encoding, values.size()));
  encode(encoding, values, encoded);
  decode(encoding, encoded, values);
  if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) {
    return Error{Code::invalid_argument, "--dtype",
                 fmt::format("the trained values exceed the range of {}; set f32", name(encoding))};
  }
  return writer.append(encoded);
}

// Checks that there is room for one layer's weights in f32, the square matrices of the start in f64, the
// predictor with its gradient and two moments, and a batch with its scores.
Status check_memory(const ModelConfig& config, uint32_t rank, const TrainOptions& options) {
  constexpr uint64_t kSquares = 8;  // matrices [d_model x d_model] at a time
  const uint64_t d_model = config.d_model, d_ff = config.d_ff;
  const uint64_t tokens = std::max<uint64_t>(options.batch, kMomentTokens);
  return expect_memory(kSquares * d_model * d_model * sizeof(double) +
                           (d_ff * d_model + (4 * rank + 2 * tokens) * (d_model + d_ff)) * sizeof(float),
                       "predictor");
}

}  // namespace

Result<std::vector<LayerReport>> train_predictors(const PredictorRequest& request) {
  TIERD_ASSIGN(const auto source, open_source(request.model));
  TIERD_TRY(refuse_mixture(*source));
  TIERD_TRY(refuse_without_relu(*source));
  const ModelConfig& config = source->config();
  TIERD_ASSIGN(const std::vector<uint32_t> ranks, parse_ranks(request.rank, config));
  TIERD_ASSIGN(const Activations activations, Activations::open(request.activations, config));
  std::error_code ignored;
  if (std::filesystem::equivalent(request.out, request.activations, ignored)) {
    return Error{Code::invalid_argument, request.out,
                 "is the file of activations; set another file for the predictors"};
  }
  const auto held_out = static_cast<uint32_t>(std::ceil(activations.tokens() * request.held_out));
  const uint32_t trained = activations.tokens() - held_out;
  if (held_out == 0 || trained == 0) {
    return Error{Code::invalid_argument, request.activations,
                 fmt::format("{} tokens, of which {} are held out; none is left to {}", activations.tokens(),
                             held_out, trained == 0 ? "train on" : "hold out")};
  }

  TIERD_TRY(check_memory(config, *std::max_element(ranks.begin(), ranks.end()), request.training));
  TIERD_ASSIGN(SafetensorsWriter writer,
               SafetensorsWriter::create(request.out, entries_of(config, ranks, request.encoding),
                                         {{kMadeFor, shape_text(config)}}));
  const auto layers = static_cast<uint64_t>(
      std::count_if(ranks.begin(), ranks.end(), [](uint32_t rank) { return rank > 0; }));
  Progress progress("training", layers * request.training.epochs * trained, request.quiet, "tokens");
  std::vector<LayerReport> reports;
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    if (ranks[layer] == 0) continue;
    LayerTask task;
    task.layer = layer;
    task.d_model = config.d_model;
    task.d_ff = config.d_ff;
    task.rank = ranks[layer];
    task.tokens = trained;
    TIERD_ASSIGN(task.decision, read_decision(*source, layer));
    task.read = [&](std::span<const uint32_t> tokens, std::span<float> x,
                    std::span<float> contributions) -> Status {
      TIERD_TRY(activations.read_inputs(layer, tokens, x));
      return activations.read_contributions(layer, tokens, contributions);
    };
    task.progress = [&, before = 0U](uint32_t epoch, uint32_t tokens, double loss) mutable {
      const bool ends = tokens == trained;
      progress.advance(tokens - std::exchange(before, ends ? 0 : tokens));
      if (!ends || request.quiet) return;
      progress.say_above(fmt::format("layer {} of 0-{}, rank {}, epoch {} of {}: loss {:.4f}", layer,
                                     config.n_layers - 1, ranks[layer], epoch + 1, request.training.epochs,
                                     loss));
    };
    TIERD_ASSIGN(LowRank predictor, train_layer(task, request.training));
    TIERD_TRY(write_rounded(writer, request.encoding, predictor.a));
    TIERD_TRY(write_rounded(writer, request.encoding, predictor.b));
    TIERD_TRY(write_rounded(writer, Encoding::f32, predictor.bias));
    TIERD_ASSIGN(const std::vector<float> kept, kept_mass(predictor, activations, layer, trained));
    TIERD_TRY(writer.append(std::as_bytes(std::span(kept))));
    TIERD_ASSIGN(auto qualities, evaluate(predictor, activations, layer, trained, request.thresholds));
    reports.push_back({.layer = layer, .rank = ranks[layer], .qualities = std::move(qualities)});
  }
  TIERD_TRY(writer.finish());
  progress.finish();
  return reports;
}

}  // namespace tierd
