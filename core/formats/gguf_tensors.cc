#include "core/formats/gguf_tensors.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/base/log.h"
#include "core/formats/gguf_names.h"

namespace tierd {
namespace {

// Returns N of "blk.N.…", or nothing.
std::optional<uint32_t> layer_of(std::string_view theirs) {
  constexpr std::string_view kLayers = "blk.";
  if (!theirs.starts_with(kLayers)) return std::nullopt;
  uint32_t layer = 0;
  const char* const end = theirs.data() + theirs.size();
  if (std::from_chars(theirs.data() + kLayers.size(), end, layer).ec != std::errc{}) return std::nullopt;
  return layer;
}

}  // namespace

GgufTensors::GgufTensors(SourceParts& parts, uint32_t further) : parts_(parts), further_(further) {
  for (const TensorSpec& spec : required_tensors(parts.config)) {
    names_.emplace(gguf_name(spec.name).value_or(spec.name), spec.name);
    values_.emplace(spec.name, spec.rows == 1 ? spec.cols : spec.rows);
  }
  if (parts.config.post_norms) return;
  // Some architectures call the norm before the network by its place after attention.
  for (uint32_t layer = 0; layer < parts.config.n_layers; ++layer) {
    names_.emplace(fmt::format("blk.{}.post_attention_norm.weight", layer),
                   fmt::format("layers.{}.ffn_norm", layer));
  }
}

// Returns whether tierd does without the tensor: divisors, which are read with the configuration, and layers
// that predict further tokens.
bool GgufTensors::is_left_out(const std::string& theirs) const {
  if (theirs == kGgufRopeDivisors || theirs == kGgufShortDivisors || theirs == kGgufLongDivisors) return true;
  const auto layer = layer_of(theirs);
  if (!layer || *layer < parts_.config.n_layers || *layer >= parts_.config.n_layers + further_) return false;
  say_once(fmt::format("{}: layers from {} on predict further tokens and are not used", parts_.path,
                       parts_.config.n_layers));
  return true;
}

Status GgufTensors::add(const GgufTensor& tensor, const std::string& path, uint32_t file) {
  if (is_left_out(tensor.name)) return {};
  const std::string origin = fmt::format("{}: tensor \"{}\"", path, tensor.name);
  if (const auto part = gguf_experts_part(tensor.name); part && parts_.config.is_mixture())
    return add_experts(tensor, *part, origin, file);
  if (const auto parts = parts_of(tensor); !parts.empty()) return add_stacked(tensor, parts, origin, file);
  const auto ours = names_.find(tensor.name);
  parts_.tensors.push_back({.name = ours == names_.end() ? tensor.name : ours->second,
                            .encoding = tensor.encoding,
                            .rows = tensor.rows,
                            .cols = tensor.cols,
                            .file = file,
                            .offset = tensor.offset});
  return {};
}

// Phi 3 has q, k and v in one tensor, and gate and up in that of up.
std::vector<std::string> GgufTensors::parts_of(const GgufTensor& tensor) const {
  const auto layer = layer_of(tensor.name);
  if (!layer) return {};
  const std::string theirs = fmt::format("blk.{}.", *layer), ours = fmt::format("layers.{}.", *layer);
  for (const char* bias : {"", ".bias"}) {
    const std::string ending = *bias == 0 ? ".weight" : bias;
    if (tensor.name == theirs + "attn_qkv" + ending)
      return {ours + "q" + bias, ours + "k" + bias, ours + "v" + bias};
  }
  const auto up = values_.find(ours + "up");
  if (tensor.name != theirs + "ffn_up.weight" || up == values_.end() || tensor.rows != 2 * up->second)
    return {};
  return {ours + "gate", ours + "up"};
}

Status GgufTensors::add_stacked(const GgufTensor& tensor, const std::vector<std::string>& parts,
                                const std::string& origin, uint32_t file) {
  const bool vector = parts.front().ends_with(".bias");
  uint64_t required = 0;
  for (const std::string& part : parts) {
    const auto values = values_.find(part);
    required += values == values_.end() ? 0 : values->second;
  }
  if (const uint64_t found = vector ? tensor.cols : tensor.rows; found != required) {
    return Error{
        Code::corrupt, origin,
        fmt::format("{} {}, the configuration requires {}", found, vector ? "values" : "rows", required)};
  }
  TensorInfo info{.name = {},
                  .encoding = tensor.encoding,
                  .rows = 1,
                  .cols = tensor.cols,
                  .file = file,
                  .offset = tensor.offset};
  for (const std::string& part : parts) {
    info.name = part;
    (vector ? info.cols : info.rows) = values_.at(part);
    parts_.tensors.push_back(info);
    info.offset += info.bytes();
  }
  return {};
}

// Adds one tensor for each expert.
Status GgufTensors::add_experts(const GgufTensor& tensor, const std::string& part, const std::string& origin,
                                uint32_t file) {
  const uint32_t experts = parts_.config.n_experts;
  if (tensor.matrices != experts) {
    return Error{Code::corrupt, origin,
                 fmt::format("{} matrices, the model has {} experts", tensor.matrices, experts)};
  }
  const uint64_t rows = tensor.rows / tensor.matrices;
  const uint64_t bytes = encoded_bytes(tensor.encoding, rows * tensor.cols);
  for (uint32_t expert = 0; expert < experts; ++expert) {
    std::string name = part;
    name.replace(name.find('*'), 1, std::to_string(expert));
    parts_.tensors.push_back({.name = std::move(name),
                              .encoding = tensor.encoding,
                              .rows = rows,
                              .cols = tensor.cols,
                              .file = file,
                              .offset = tensor.offset + expert * bytes});
  }
  return {};
}

}  // namespace tierd
