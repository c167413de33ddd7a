#include "tools/lab/train/low_rank_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/formats/safetensors.h"
#include "core/model/layout/codec.h"

namespace tierd {

Result<LowRankFile> LowRankFile::open(const std::string& path, const ModelConfig& config) {
  TIERD_ASSIGN(File file, File::open(path));
  TIERD_ASSIGN(const auto tensors, read_safetensors_header(file));
  LowRankFile made(std::move(file), config);
  const auto find = [&](const std::string& name) -> const SafetensorsTensor* {
    const auto found = std::ranges::find(tensors, name, &SafetensorsTensor::name);
    return found == tensors.end() ? nullptr : &*found;
  };
  const auto take = [&](const SafetensorsTensor& found,
                        const std::vector<uint64_t>& shape) -> Result<Tensor> {
    const std::string origin = fmt::format("{}: tensor \"{}\"", path, found.name);
    const auto encoding = encoding_of_dtype(found.dtype);
    if (!encoding) {
      return Error{Code::unsupported, origin,
                   fmt::format("dtype \"{}\", expected F32, F16 or BF16", found.dtype)};
    }
    if (found.shape != shape) {
      return Error{
          Code::corrupt, origin,
          fmt::format("shape [{}], expected [{}]", fmt::join(found.shape, ", "), fmt::join(shape, ", "))};
    }
    return Tensor{*encoding, found.offset};
  };
  for (uint32_t n = 0; n < config.n_layers; ++n) {
    const std::string site = fmt::format("layers.{}.ffn", n);
    const SafetensorsTensor *const a = find(site + ".a"), *const b = find(site + ".b");
    if (a == nullptr && b == nullptr) continue;
    if (a == nullptr || b == nullptr) {
      return Error{Code::corrupt, path, fmt::format("one of {0}.a and {0}.b is missing", site)};
    }
    const uint64_t rank = a->shape.empty() ? 0 : a->shape[0];
    if (rank == 0 || rank > std::max(config.d_model, config.d_ff)) {
      return Error{Code::corrupt, fmt::format("{}: tensor \"{}.a\"", path, site),
                   fmt::format("rank {}, expected 1 to {}", rank, std::max(config.d_model, config.d_ff))};
    }
    Layer& layer = made.layers_[n].emplace();
    layer.rank = static_cast<uint32_t>(rank);
    TIERD_ASSIGN(layer.a, take(*a, {rank, config.d_model}));
    TIERD_ASSIGN(layer.b, take(*b, {config.d_ff, rank}));
    if (const SafetensorsTensor* const bias = find(site + ".bias")) {
      TIERD_ASSIGN(layer.bias, take(*bias, {config.d_ff}));
    }
  }
  if (std::ranges::none_of(made.layers_, [](const auto& layer) { return layer.has_value(); })) {
    return Error{Code::not_found, path, "has no tensor \"layers.N.ffn.a\" for any layer of the model"};
  }
  return made;
}

Result<LowRank> LowRankFile::read(uint32_t layer) const {
  const Layer& of = *layers_[layer];
  LowRank predictor;
  predictor.rank = of.rank;
  predictor.d_model = d_model_;
  predictor.d_ff = d_ff_;
  TIERD_ASSIGN(predictor.a, values(of.a, uint64_t{of.rank} * d_model_));
  TIERD_ASSIGN(predictor.b, values(of.b, uint64_t{d_ff_} * of.rank));
  predictor.bias.resize(d_ff_);
  if (of.bias) {
    TIERD_ASSIGN(predictor.bias, values(*of.bias, d_ff_));
  }
  return predictor;
}

Result<std::vector<float>> LowRankFile::values(const Tensor& tensor, uint64_t count) const {
  std::vector<std::byte> encoded(encoded_bytes(tensor.encoding, count));
  TIERD_TRY(file_.read_exact(tensor.offset, encoded));
  std::vector<float> found(count);
  decode(tensor.encoding, encoded, found);
  return found;
}

}  // namespace tierd
