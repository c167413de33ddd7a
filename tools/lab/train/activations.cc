#include "tools/lab/train/activations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/check.h"
#include "core/formats/safetensors.h"
#include "core/model/layout/codec.h"

namespace tierd {
namespace {

// Finds the tensor `name` of `cols` columns. Errors: those of Activations::open.
Result<const SafetensorsTensor*> find_rows(const File& file, const std::vector<SafetensorsTensor>& tensors,
                                           const std::string& name, uint32_t cols) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const SafetensorsTensor& t) { return t.name == name; });
  if (found == tensors.end()) {
    return Error{Code::not_found, file.path(), fmt::format("has no tensor \"{}\"", name)};
  }
  const auto error = [&](Code code, std::string detail) {
    return Error{code, fmt::format("{}: tensor \"{}\"", file.path(), name), std::move(detail)};
  };
  if (found->dtype != "F16" && found->dtype != "F32") {
    return error(Code::unsupported, fmt::format("dtype \"{}\", expected F16 or F32", found->dtype));
  }
  if (found->shape.size() != 2 || found->shape[1] != cols) {
    return error(Code::corrupt,
                 fmt::format("shape [{}], expected [tokens, {}]", fmt::join(found->shape, ", "), cols));
  }
  if (found->shape[0] > std::numeric_limits<uint32_t>::max()) {
    return error(Code::unsupported, fmt::format("{} tokens are too many for training", found->shape[0]));
  }
  return &*found;
}

}  // namespace

Result<Activations> Activations::open(const std::string& path, const ModelConfig& config) {
  TIERD_ASSIGN(File file, File::open(path));
  TIERD_ASSIGN(const auto tensors, read_safetensors_header(file));
  Activations activations(std::move(file));
  bool first = true;
  const auto add = [&](Rows& rows, std::string name, uint32_t cols) -> Status {
    TIERD_ASSIGN(const SafetensorsTensor* tensor, find_rows(activations.file_, tensors, name, cols));
    const auto tokens = static_cast<uint32_t>(tensor->shape[0]);
    if (std::exchange(first, false)) activations.tokens_ = tokens;
    if (tokens != activations.tokens_) {
      return Error{
          Code::corrupt, fmt::format("{}: tensor \"{}\"", path, name),
          fmt::format("{} tokens, expected {} as in the tensors before it", tokens, activations.tokens_)};
    }
    rows = {std::move(name), *encoding_of_dtype(tensor->dtype), tensor->offset, cols};
    return {};
  };
  for (uint32_t n = 0; n < config.n_layers; ++n) {
    Layer& layer = activations.layers_.emplace_back();
    TIERD_TRY(add(layer.x, fmt::format("layers.{}.ffn.x", n), config.d_model));
    TIERD_TRY(add(layer.contribution, fmt::format("layers.{}.ffn.contribution", n), config.d_ff));
  }
  return activations;
}

Status Activations::read_inputs(uint32_t layer, std::span<const uint32_t> tokens, std::span<float> x) const {
  return read(layers_[layer].x, tokens, std::numeric_limits<float>::lowest(), x);
}

Status Activations::read_contributions(uint32_t layer, std::span<const uint32_t> tokens,
                                       std::span<float> contributions) const {
  return read(layers_[layer].contribution, tokens, 0, contributions);
}

// Reads tokens that follow each other with one call.
Status Activations::read(const Rows& rows, std::span<const uint32_t> tokens, float least,
                         std::span<float> out) const {
  TIERD_CHECK(out.size() == tokens.size() * rows.cols);
  const uint64_t row_bytes = encoded_bytes(rows.encoding, rows.cols);
  std::vector<std::byte> encoded;
  for (size_t at = 0; at < tokens.size();) {
    size_t run = 1;
    while (at + run < tokens.size() && tokens[at + run] == tokens[at] + run) ++run;
    encoded.resize(run * row_bytes);
    TIERD_TRY(file_.read_exact(rows.offset + tokens[at] * row_bytes, encoded));
    const auto values = out.subspan(at * rows.cols, run * rows.cols);
    decode(rows.encoding, encoded, values);
    const auto wrong = std::find_if(values.begin(), values.end(),
                                    [&](float value) { return !(std::isfinite(value) && value >= least); });
    if (wrong != values.end()) {
      const auto place = static_cast<uint64_t>(wrong - values.begin());
      return Error{
          Code::corrupt, fmt::format("{}: tensor \"{}\"", file_.path(), rows.name),
          fmt::format("row {}, column {} is {}, expected a finite number{}", tokens[at] + place / rows.cols,
                      place % rows.cols, *wrong, least == 0 ? " of 0 or more" : "")};
    }
    at += run;
  }
  return {};
}

}  // namespace tierd
