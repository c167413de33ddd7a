#include "tools/lab/train/write_gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/safetensors.h"
#include "tools/lab/safetensors/safetensors_writer.h"
#include "tools/lab/train/refused_models.h"

namespace tierd {
namespace {

constexpr uint64_t kChunkBytes = 1 << 20;

Result<std::string> dtype_of(const TensorSource& source, const TensorInfo& tensor) {
  if (const auto dtype = dtype_of_encoding(tensor.encoding)) return *dtype;
  return Error{Code::unsupported, source.path(),
               fmt::format("{} is {}, expected f32, f16 or bf16", tensor.name, name(tensor.encoding))};
}

Status copy(const TensorSource& source, const TensorInfo& tensor, SafetensorsWriter& writer,
            Progress& progress) {
  std::vector<std::byte> chunk;
  for (uint64_t at = 0; at < tensor.bytes(); at += kChunkBytes) {
    chunk.resize(std::min(kChunkBytes, tensor.bytes() - at));
    TIERD_TRY(source.read(tensor, at, chunk));
    TIERD_TRY(writer.append(chunk));
    progress.advance(chunk.size());
  }
  return {};
}

}  // namespace

Status write_gates(const TensorSource& source, const std::string& path, bool quiet) {
  TIERD_TRY(refuse_mixture(source));
  const ModelConfig& config = source.config();
  if (!config.gated) {
    return Error{
        Code::unsupported, source.path(),
        fmt::format("architecture '{}' has no gates; use tier train predictor", config.architecture)};
  }
  std::vector<SafetensorsEntry> entries;
  uint64_t bytes = 0;
  for (uint32_t n = 0; n < config.n_layers; ++n) {
    const TensorInfo* const gate = source.find(fmt::format("layers.{}.gate", n));
    TIERD_ASSIGN(std::string dtype, dtype_of(source, *gate));
    entries.push_back({fmt::format("layers.{}.ffn.gate", n), std::move(dtype), {gate->rows, gate->cols}});
    bytes += gate->bytes();
    if (config.ffn_bias) entries.push_back({fmt::format("layers.{}.ffn.bias", n), "F32", {config.d_ff}});
  }

  TIERD_ASSIGN(SafetensorsWriter writer,
               SafetensorsWriter::create(path, entries, {{kMadeFor, shape_text(config)}}));
  Progress progress("writing", bytes, quiet);
  for (uint32_t n = 0; n < config.n_layers; ++n) {
    TIERD_TRY(copy(source, *source.find(fmt::format("layers.{}.gate", n)), writer, progress));
    if (!config.ffn_bias) continue;
    TIERD_ASSIGN(const auto bias, source.read_f32(*source.find(fmt::format("layers.{}.gate.bias", n))));
    TIERD_TRY(writer.append(std::as_bytes(std::span(bias))));
  }
  TIERD_TRY(writer.finish());
  progress.finish();
  return {};
}

}  // namespace tierd
