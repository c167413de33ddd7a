#include "tools/lab/prune/layer_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tierd {
namespace {

constexpr std::array kOperators = {"q", "k", "v", "o", "gate", "up", "down"};

std::string name_of(uint32_t layer, std::string_view part) {
  return fmt::format("layers.{}.{}", layer, part);
}

// Leaves `values` empty if the model has no such tensor: a source holds all that are required.
Status read_some(const TensorSource& source, const std::string& name, std::vector<float>& values) {
  const TensorInfo* tensor = source.find(name);
  if (tensor == nullptr) return {};
  TIERD_ASSIGN(values, source.read_f32(*tensor));
  return {};
}

Status read_linear(const TensorSource& source, const std::string& name, LinearWeights& linear) {
  const TensorInfo* tensor = source.find(name);
  if (tensor == nullptr) return {};
  linear.name = name;
  linear.rows = static_cast<uint32_t>(tensor->rows);
  linear.cols = static_cast<uint32_t>(tensor->cols);
  TIERD_ASSIGN(linear.weight, source.read_f32(*tensor));
  // Scores of weights that are not finite have no order.
  if (!std::ranges::all_of(linear.weight, [](float weight) { return std::isfinite(weight); }))
    return Error{Code::invalid_argument, fmt::format("{}: {}", source.path(), name),
                 "has weights that are not finite; the model may be damaged"};
  return read_some(source, name + ".bias", linear.bias);
}

Status read_norm(const TensorSource& source, const std::string& name, NormWeights& norm) {
  norm.name = name;
  TIERD_TRY(read_some(source, name, norm.weight));
  return read_some(source, name + ".bias", norm.bias);
}

}  // namespace

std::vector<LinearWeights*> LayerWeights::readers(LayerInput input) {
  switch (input) {
    case LayerInput::attention:
      return {&q, &k, &v};
    case LayerInput::attended:
      return {&o};
    case LayerInput::network:
      return gate.name.empty() ? std::vector{&up} : std::vector{&gate, &up};
    case LayerInput::activated:
      return {&down};
  }
  return {};
}

uint32_t LayerWeights::width(LayerInput input) {
  return readers(input).front()->cols;
}

Result<LayerWeights> read_layer(const TensorSource& source, uint32_t layer) {
  LayerWeights weights;
  NormWeights* const norms[] = {&weights.attn_norm, &weights.ffn_norm, &weights.q_norm, &weights.k_norm};
  const char* const norm_names[] = {"attn_norm", "ffn_norm", "q_norm", "k_norm"};
  for (size_t i = 0; i < std::size(norms); ++i)
    TIERD_TRY(read_norm(source, name_of(layer, norm_names[i]), *norms[i]));
  LinearWeights* const operators[] = {&weights.q,    &weights.k,  &weights.v,   &weights.o,
                                      &weights.gate, &weights.up, &weights.down};
  for (size_t i = 0; i < std::size(operators); ++i)
    TIERD_TRY(read_linear(source, name_of(layer, kOperators[i]), *operators[i]));
  return weights;
}

std::vector<std::string> layer_matrices(const TensorSource& source, uint32_t layer) {
  std::vector<std::string> names;
  for (const char* part : kOperators) {
    std::string name = name_of(layer, part);
    if (source.find(name) != nullptr) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace tierd
