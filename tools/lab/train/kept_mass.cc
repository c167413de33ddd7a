#include "tools/lab/train/kept_mass.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <span>
#include <system_error>

#include "core/formats/safetensors.h"
#include "core/store/source.h"
#include "tools/lab/safetensors/safetensors_writer.h"
#include "tools/lab/train/low_rank_file.h"
#include "tools/lab/train/quality.h"

namespace tierd {
namespace {

// Copies a tensor byte for byte.
Status copy(const File& from, const SafetensorsTensor& tensor, SafetensorsWriter& to) {
  std::vector<std::byte> bytes(tensor.bytes);
  TIERD_TRY(from.read_exact(tensor.offset, bytes));
  return to.append(bytes);
}

Status check_paths(const KeptMassRequest& request) {
  for (const std::string& other : {request.activations, request.predictors}) {
    std::error_code ignored;
    if (std::filesystem::equivalent(request.out, other, ignored))
      return Error{Code::invalid_argument, request.out, "is the input file; set another file with -o"};
  }
  return {};
}

}  // namespace

Result<std::vector<float>> kept_mass(const LowRank& predictor, const Activations& activations, uint32_t layer,
                                     uint32_t first) {
  std::vector<double> kept(kKeptLevels, 0);
  std::vector<uint32_t> order(predictor.d_ff);
  TIERD_TRY(for_each_token(predictor, activations, layer, layer, first, [&](auto scores, auto contributions) {
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
    double sum = 0;
    size_t taken = 0;
    for (uint32_t level = 0; level < kKeptLevels; ++level) {
      for (const size_t end = order.size() * level / (kKeptLevels - 1); taken < end; ++taken)
        sum += contributions[order[taken]];
      kept[level] += sum;
    }
  }));
  std::vector<float> shares(kKeptLevels, 1);
  for (uint32_t level = 0; level < kKeptLevels && kept.back() > 0; ++level)
    shares[level] = static_cast<float>(kept[level] / kept.back());
  return shares;
}

Status write_kept_mass(const KeptMassRequest& request) {
  TIERD_TRY(check_paths(request));
  TIERD_ASSIGN(const auto source, open_source(request.model));
  const ModelConfig& config = source->config();
  TIERD_ASSIGN(const LowRankFile predictors, LowRankFile::open(request.predictors, config));
  TIERD_ASSIGN(const Activations activations, Activations::open(request.activations, config));
  TIERD_ASSIGN(const File file, File::open(request.predictors));
  TIERD_ASSIGN(auto tensors, read_safetensors_header(file));
  TIERD_ASSIGN(const SafetensorsMetadata metadata, read_safetensors_metadata(file));
  std::erase_if(tensors, [](const SafetensorsTensor& tensor) { return tensor.name.ends_with(kKept); });
  std::vector<SafetensorsEntry> entries;
  for (const SafetensorsTensor& tensor : tensors)
    entries.push_back({tensor.name, tensor.dtype, tensor.shape});
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    if (predictors.has(layer))
      entries.push_back({fmt::format("layers.{}.ffn{}", layer, kKept), "F32", {kKeptLevels}});
  }
  TIERD_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(request.out, entries, metadata));
  for (const SafetensorsTensor& tensor : tensors) TIERD_TRY(copy(file, tensor, writer));
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    if (!predictors.has(layer)) continue;
    TIERD_ASSIGN(const LowRank predictor, predictors.read(layer));
    TIERD_ASSIGN(const std::vector<float> kept, kept_mass(predictor, activations, layer, 0));
    TIERD_TRY(writer.append(std::as_bytes(std::span(kept))));
  }
  return writer.finish();
}

}  // namespace tierd
