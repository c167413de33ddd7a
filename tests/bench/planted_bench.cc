// Measures the time of a planted model of OPT-6.7B's width on one thread: rows of up by the predictor's rank,
// values of the other matrices, embeddings.
#include <benchmark/benchmark.h>

#include <memory>

#include "tools/lab/planted/planted_source.h"

namespace tierd {
namespace {

constexpr uint32_t kWidth = 4096;
constexpr uint32_t kRows = 256;

std::unique_ptr<PlantedSource> make_source() {
  ModelConfig c;
  c.architecture = c.name = "opt";
  c.n_layers = 32;
  c.d_model = kWidth;
  c.n_heads = c.n_kv_heads = 32;
  c.head_dim = 128;
  c.d_ff = 4 * kWidth;
  c.vocab_size = 50'272;
  c.context_length = 2048;
  c.norm = Norm::layer;
  c.norm_bias = c.ffn_bias = true;
  c.gated = false;
  c.activation = Activation::relu;
  c.position = PositionKind::learned;
  return std::move(*PlantedSource::make(c, *read_planted_profile("flash"), Encoding::f16, 1));
}

// Reads rows of a tensor as f16.
void read_rows(benchmark::State& state, const char* name) {
  const auto source = make_source();
  const TensorInfo& tensor = *source->find(name);
  std::vector<std::byte> bytes(encoded_bytes(tensor.encoding, kRows * tensor.cols));
  uint64_t offset = 0;
  for (auto _ : state) {
    if (!source->read(tensor, offset, bytes).ok()) state.SkipWithError("cannot be read");
    offset = (offset + bytes.size()) % (tensor.bytes() - bytes.size());
  }
  state.counters["ns_per_row"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kRows * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK_CAPTURE(read_rows, up_rank_128, "layers.0.up");
BENCHMARK_CAPTURE(read_rows, up_rank_1024, "layers.31.up");
BENCHMARK_CAPTURE(read_rows, down, "layers.0.down");
BENCHMARK_CAPTURE(read_rows, q, "layers.0.q");
BENCHMARK_CAPTURE(read_rows, embed, "embed");

}  // namespace
}  // namespace tierd

BENCHMARK_MAIN();
