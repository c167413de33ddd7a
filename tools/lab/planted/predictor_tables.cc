#include "tools/lab/planted/predictor_tables.h"

#include <fmt/format.h>

#include <vector>

#include "core/base/progress.h"
#include "tools/lab/planted/kernels.h"
#include "tools/lab/planted/parallel.h"
#include "tools/lab/safetensors/safetensors_writer.h"

namespace tierd {
namespace {

// Makes all rows in parallel, as f16.
template <class MakeRow>
std::vector<uint16_t> make_table(uint32_t rows, uint32_t cols, const MakeRow& make_row) {
  std::vector<uint16_t> table(uint64_t{rows} * cols);
  in_parallel(rows, [&](uint32_t row) {
    std::vector<float> values(cols);
    make_row(row, values);
    planted_kernels().to_f16(values, table.data() + uint64_t{row} * cols);
  });
  return table;
}

}  // namespace

Status write_predictor_tables(const PlantedSource& source, const std::string& path, bool quiet) {
  const uint32_t n_layers = source.config().n_layers;
  std::vector<SafetensorsEntry> entries;
  uint64_t values = 0;
  for (uint32_t layer = 0; layer < n_layers; ++layer) {
    const auto [d_model, d_ff, rank] = source.ffn(layer).shape();
    entries.push_back({fmt::format("layers.{}.ffn.a", layer), "F16", {rank, d_model}});
    entries.push_back({fmt::format("layers.{}.ffn.b", layer), "F16", {d_ff, rank}});
    values += uint64_t{rank} * (d_model + d_ff);
  }
  TIERD_ASSIGN(SafetensorsWriter writer,
               SafetensorsWriter::create(path, entries, {{kMadeFor, shape_text(source.config())}}));
  Progress progress("predictor", values * sizeof(uint16_t), quiet);
  for (uint32_t layer = 0; layer < n_layers; ++layer) {
    const PlantedFfn& ffn = source.ffn(layer);
    const auto [d_model, d_ff, rank] = ffn.shape();
    const auto features = source.features(layer);
    const auto a =
        make_table(rank, d_model, [&](uint32_t row, std::span<float> out) { ffn.predictor_a(row, out); });
    const auto b = make_table(
        d_ff, rank, [&](uint32_t row, std::span<float> out) { ffn.predictor_b(*features, row, out); });
    for (const auto* table : {&a, &b}) {
      TIERD_TRY(writer.append(std::as_bytes(std::span(*table))));
      progress.advance(table->size() * sizeof(uint16_t));
    }
  }
  TIERD_TRY(writer.finish());
  progress.finish();
  return {};
}

}  // namespace tierd
