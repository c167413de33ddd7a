// Measures the kernels in bare loops, and the machine's plain read bandwidth in the same run.
//
//   build/release/bin/kernels_bench [--benchmark_filter=gemv] [--benchmark_repetitions=5
//       --benchmark_enable_random_interleaving=true]
//
// gemv reads 2 GiB of weights, more than caches hold; GB/s counts weight bytes. gemm passes 128 tokens
// through an operator of 4096 columns; GMAC/s counts multiply-adds. columns50 adds up the scaled columns of
// half of the channels. encode recodes neurons of f16. Every thread processes its own run of neurons of about
// 512 KiB, one call a neuron, as the compute workers do.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/align.h"
#include "core/base/random.h"
#include "core/model/layout/bundle.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/row_group.h"
#include "tests/bench/measure.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/recoding.h"

namespace tierd {
namespace {

constexpr size_t kWeightBytes = size_t{2} << 30;
constexpr uint32_t kCols = 4096;
constexpr uint32_t kGemmTokens = 128;
constexpr uint32_t kGemmRows = 11008;
constexpr size_t kNeuronBytes = 512 << 10;
// Returns one mapping for all benchmarks, in huge pages as a tier's memory is. Its bytes are moderate values
// in every encoding: near 0.01 as f32, f16, bf16 and scales; varying in blocks.
const std::byte* weights() {
  static const std::byte* const kWeights = [] {
    constexpr size_t kHugePage = size_t{2} << 20;
    void* map = mmap(nullptr, kWeightBytes + 2 * kHugePage, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* words = reinterpret_cast<uint64_t*>(align_up(reinterpret_cast<uintptr_t>(map), kHugePage));
    madvise(words, kWeightBytes + kHugePage, MADV_HUGEPAGE);
    Random random(1);
    for (size_t i = 0; i < kWeightBytes / 8; ++i)
      words[i] = (random.next() & 0x03ff03ff03ff03ff) | 0x2000200020002000;
    return reinterpret_cast<const std::byte*>(words);
  }();
  return kWeights;
}

__attribute__((target("avx512f"))) uint64_t read_all(const std::byte* p, size_t bytes) {
  __m512i sum[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                    _mm512_setzero_si512()};
  for (size_t i = 0; i + 256 <= bytes; i += 256) {
    for (int k = 0; k < 4; ++k) {
      sum[k] = _mm512_xor_si512(sum[k], _mm512_load_si512(p + i + 64 * k));
      __builtin_prefetch(p + i + 64 * k + 4096);
    }
  }
  uint64_t words[8];
  _mm512_storeu_si512(words,
                      _mm512_xor_si512(_mm512_xor_si512(sum[0], sum[1]), _mm512_xor_si512(sum[2], sum[3])));
  return words[0] ^ words[7];
}

void read(benchmark::State& state) {
  if (__builtin_cpu_supports("avx512f") == 0) {
    state.SkipWithError("the plain read is written for AVX-512");
    return;
  }
  const size_t share = kWeightBytes / static_cast<uint32_t>(state.range(0));
  measure(state, "GB/s", 1e-9 * kWeightBytes,
          [&](uint32_t i) { benchmark::DoNotOptimize(read_all(weights() + i * share, share)); });
}

struct Input {
  explicit Input(uint32_t tokens) : x(size_t{tokens} * kCols) {
    Random random(2);
    for (auto& v : x) v = random.symmetric();
    quantized.resize(tokens, kCols);
    for (uint32_t t = 0; t < tokens; ++t)
      best_kernels().quantize_row(x.data() + t * kCols, t, quantized, nullptr);
  }
  std::vector<float> x;
  QuantizedRows quantized;
};

// The buffers of a pass over an operator of `groups` row groups by `tokens`.
struct Pass {
  Pass(const ComputeKernels& kernels_, Encoding e_, bool int8_, uint32_t groups_, uint32_t tokens_)
      : kernels(kernels_),
        e(e_),
        int8(int8_),
        groups(groups_),
        input(tokens_),
        tokens(tokens_),
        y(size_t{groups_} * kGroupRows * tokens_) {}

  // Computes neuron by neuron, with the neurons split evenly over the threads.
  void run(uint32_t thread, uint32_t threads) {
    const size_t bytes = group_bytes(e, kCols);
    const auto neuron = static_cast<uint32_t>(std::max<size_t>(1, kNeuronBytes / bytes));
    const uint32_t neurons = (groups + neuron - 1) / neuron;
    const size_t ldy = size_t{groups} * kGroupRows;
    for (uint32_t n = neurons * thread / threads; n < neurons * (thread + 1) / threads; ++n) {
      const uint32_t first = n * neuron, count = std::min(neuron, groups - first);
      const std::byte* w = weights() + first * bytes;
      float* out = y.data() + size_t{first} * kGroupRows;
      if (int8) {
        kernels.matmul_int8(e, w, count, kCols, input.quantized, 0, tokens, out, ldy);
      } else {
        kernels.matmul(e, w, count, kCols, input.x.data(), kCols, tokens, out, ldy);
      }
    }
  }

  const ComputeKernels& kernels;
  Encoding e;
  bool int8;
  uint32_t groups;
  Input input;
  uint32_t tokens;
  std::vector<float> y;
};

void gemv(benchmark::State& state, const ComputeKernels& kernels, Encoding e, bool int8, uint32_t tokens) {
  const auto threads = static_cast<uint32_t>(state.range(0));
  const auto groups = static_cast<uint32_t>(kWeightBytes / group_bytes(e, kCols));
  Pass pass(kernels, e, int8, groups, tokens);
  measure(state, "GB/s", 1e-9 * static_cast<double>(groups * group_bytes(e, kCols)),
          [&](uint32_t i) { pass.run(i, threads); });
}

void gemm(benchmark::State& state, const ComputeKernels& kernels, Encoding e, bool int8) {
  const auto threads = static_cast<uint32_t>(state.range(0));
  Pass pass(kernels, e, int8, kGemmRows / kGroupRows, kGemmTokens);
  measure(state, "GMAC/s", 1e-9 * kGemmRows * kCols * kGemmTokens, [&](uint32_t i) { pass.run(i, threads); });
}

// Computes with `percent` per cent of the channels of an operator of 4096 outputs, drawn at random: adds up
// scaled columns in runs of 64 channels, as axis channel does. Threads share the outputs. GB/s counts the
// bytes of the active channels.
void columns(benchmark::State& state, const ComputeKernels& kernels, Encoding e, bool int8,
             uint32_t percent) {
  const auto threads = static_cast<uint32_t>(state.range(0));
  const size_t bytes = encoded_bytes(e, kCols);
  Random random(3);
  std::vector<const std::byte*> active;
  std::vector<size_t> runs = {0};
  for (size_t channel = 0; (channel + 1) * bytes <= kWeightBytes; ++channel) {
    if (channel % kPartialNeurons == 0 && active.size() != runs.back()) runs.push_back(active.size());
    if (random.uniform() * 100 < percent) active.push_back(weights() + channel * bytes);
  }
  runs.push_back(active.size());
  const std::vector<float> factors(kPartialNeurons, 0.1f);
  std::vector<float> y(kCols);
  measure(state, "GB/s", 1e-9 * static_cast<double>(active.size() * bytes), [&](uint32_t thread) {
    const uint32_t share = kCols / threads;
    for (size_t run = 0; run + 1 < runs.size(); ++run) {
      const auto run_at = [&](size_t r) {
        return std::span(active).subspan(runs[r], r + 1 < runs.size() ? runs[r + 1] - runs[r] : 0);
      };
      const ColumnRun of_run = {e, kCols, run_at(run), run_at(run + 1)};
      const uint32_t first = thread * share, last = first + share;
      if (int8) {
        kernels.add_weighted_int8(of_run, first, last, factors.data(), 0, 1, y.data(), 0, nullptr);
      } else {
        kernels.add_weighted(of_run, first, last, factors.data(), 0, 1, y.data(), 0);
      }
    }
  });
}

// Recodes bundles of f16, of three rows of 4096 values each, one after the other, as moves to a tier that
// recodes do. GB/s counts the bytes read.
void encode_bundles(benchmark::State& state, const ComputeKernels& kernels, Encoding to) {
  const auto threads = static_cast<uint32_t>(state.range(0));
  const Bundles cut{.width = kCols, .inner = 1, .gated = true};
  const NeuronRecoding recoding(cut, Encodings(3, Encoding::f16), Encodings(3, to));
  const size_t bundles = kWeightBytes / recoding.from_bytes();
  measure(state, "GB/s", 1e-9 * static_cast<double>(bundles * recoding.from_bytes()), [&](uint32_t thread) {
    std::vector<std::byte> out(recoding.to_bytes());
    for (size_t i = bundles * thread / threads; i < bundles * (thread + 1) / threads; ++i)
      recoding.encode_neuron(kernels, weights() + i * recoding.from_bytes(), out.data());
    benchmark::DoNotOptimize(out.data());
  });
}

// Computes one head of 128 over a context of 4096 positions in a cache of 8 heads. GB/s counts bytes of keys
// and values.
void attention(benchmark::State& state, const ComputeKernels& kernels) {
  constexpr uint32_t kPositions = 4096, kHeadDim = 128, kHeads = 8;
  std::vector<uint16_t> cache(size_t{2} * kPositions * kHeadDim * kHeads, 0x2c00);
  std::vector<float> q(kHeadDim, 0.1f), scratch(kPositions), out(kHeadDim);
  const uint16_t* v = cache.data() + cache.size() / 2;
  uint32_t head = 0;
  for (auto _ : state) {
    const size_t at = head++ % kHeads * kHeadDim;
    kernels.attend_f16(q.data(), cache.data() + at, v + at, kHeadDim * kHeads, 0, kPositions, kHeadDim,
                       {.scale = 0.09f}, scratch.data(), out.data());
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["GB/s"] =
      benchmark::Counter(2e-9 * 2 * kPositions * kHeadDim, benchmark::Counter::kIsIterationInvariantRate);
}

void activations(benchmark::State& state, const ComputeKernels& kernels, std::string_view which) {
  const Input input(2);
  std::vector<float> out(kCols);
  QuantizedRows quantized;
  quantized.resize(1, kCols);
  for (auto _ : state) {
    if (which == "rms_norm") {
      kernels.rms_norm(input.x.data(), input.x.data() + kCols, 1e-5f, kCols, out.data());
    } else if (which == "silu_mul") {
      kernels.activate(Activation::silu, 0, input.x.data(), input.x.data() + kCols, kCols, out.data());
    } else {
      kernels.quantize_row(input.x.data(), 0, quantized, nullptr);
    }
    benchmark::ClobberMemory();
  }
}

void add_all() {
  const auto timed = [](benchmark::internal::Benchmark* b) {
    b->ArgName("threads")->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);
  };
  timed(benchmark::RegisterBenchmark("read", read));
  for (const auto set : kernel_names()) {
    const ComputeKernels& kernels = *kernels_by_name(set);
    const std::string suffix = "/" + std::string(set);
    if (set == "scalar") continue;  // takes minutes an iteration
    for (const Encoding e : kAllEncodings) {
      for (const bool int8 : {true, false}) {
        if (int8 && !is_quantized(e)) continue;
        const std::string what = std::string(name(e)) + (int8 ? "_int8" : "") + suffix;
        for (const uint32_t tokens : {1u, 4u, 16u}) {
          timed(benchmark::RegisterBenchmark(
              ((tokens == 1 ? "gemv/" : "batch" + std::to_string(tokens) + "/") + what).c_str(),
              [&kernels, e, int8, tokens](benchmark::State& s) { gemv(s, kernels, e, int8, tokens); }));
        }
        timed(benchmark::RegisterBenchmark(
            ("gemm/" + what).c_str(),
            [&kernels, e, int8](benchmark::State& s) { gemm(s, kernels, e, int8); }));
      }
      for (const bool int8 : {true, false}) {
        if (!has_columns(e) || (int8 && !is_quantized(e))) continue;
        for (const uint32_t percent : {100u, 50u, 20u}) {
          timed(benchmark::RegisterBenchmark(
              fmt::format("columns{}/{}{}{}", percent, name(e), int8 ? "_int8" : "", suffix).c_str(),
              [&kernels, e, int8, percent](benchmark::State& s) { columns(s, kernels, e, int8, percent); }));
        }
      }
    }
    for (const Encoding to : {Encoding::q8_0, Encoding::q4_0}) {
      timed(benchmark::RegisterBenchmark(
          fmt::format("encode/{}{}", name(to), suffix).c_str(),
          [&kernels, to](benchmark::State& s) { encode_bundles(s, kernels, to); }));
    }
    benchmark::RegisterBenchmark(("attention" + suffix).c_str(),
                                 [&kernels](benchmark::State& s) { attention(s, kernels); });
    for (const std::string_view which : {"rms_norm", "silu_mul", "quantize_row"}) {
      benchmark::RegisterBenchmark(
          (std::string(which) + suffix).c_str(),
          [&kernels, which](benchmark::State& s) { activations(s, kernels, which); });
    }
  }
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  tierd::weights();  // fills the weights before measurements
  tierd::add_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
