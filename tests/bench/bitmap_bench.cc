// Compares bitmaps with dense weights: copying memory, expanding half-empty weights, and products from dense
// and compressed weights.
//
//   build/release/bin/bitmap_bench [--benchmark_filter=f16] [--benchmark_repetitions=9
//       --benchmark_enable_random_interleaving=true]
//
// The data are 1 GiB of dense weights of 4096 columns, of which each element is zero with probability 1/2,
// and their bitmaps, so that no cache holds them. GB/s counts dense bytes in all rows, those that a copy
// writes, so that rows compare by time; "read" counts the bytes read from memory. Every thread processes its
// own run of neurons of about 512 KiB, one call a neuron, as the compute workers do. Expansion writes to 256
// KiB that stay in a cache or, with "to_memory", to as much memory as was compressed.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/align.h"
#include "core/base/random.h"
#include "core/model/layout/bitmap.h"
#include "core/model/layout/row_group.h"
#include "tests/bench/measure.h"
#include "tiers/compute/kernels.h"

namespace tierd {
namespace {

constexpr uint64_t kWeightBytes = uint64_t{1} << 30;
constexpr uint32_t kCols = 4096;
constexpr uint64_t kNeuronBytes = 512 << 10;
constexpr uint64_t kCached = 256 << 10;

// Maps huge pages, as a tier's memory does.
std::byte* map(uint64_t bytes) {
  constexpr uint64_t kHugePage = uint64_t{2} << 20;
  void* const mapped =
      mmap(nullptr, bytes + 2 * kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const at = reinterpret_cast<std::byte*>(align_up(reinterpret_cast<uintptr_t>(mapped), kHugePage));
  madvise(at, bytes + kHugePage, MADV_HUGEPAGE);
  return at;
}

// Neurons of whole row groups, dense and as bitmaps.
struct Weights {
  explicit Weights(Encoding e) : encoding(e), bitmap(*Bitmap::of(e, true)) {
    const uint64_t group = group_bytes(e, kCols);
    groups = static_cast<uint32_t>(kNeuronBytes / group);
    neuron = groups * group;
    count = kWeightBytes / neuron;
    dense = map(count * neuron);
    packed = map(count * neuron);
    Random random(1);
    for (uint64_t i = 0; i < count * neuron; i += bitmap.element_bytes) {
      const uint64_t bits = random.next();
      const uint64_t value = (bits & 0x03ff03ff03ff03ff) | 0x2000200020002000;
      if ((bits >> 60 & 1) != 0) {
        std::memcpy(dense + i, &value, bitmap.element_bytes);
      } else {
        std::memset(dense + i, std::to_integer<int>(bitmap.zero), bitmap.element_bytes);
      }
    }
    std::byte* at = packed;
    for (uint64_t n = 0; n < count; ++n) {
      const std::span<const std::byte> from(dense + n * neuron, neuron);
      const uint64_t bytes = compressed_bytes(bitmap, from);
      compress(bitmap, from, {at, bytes});
      ends.push_back(static_cast<uint64_t>(at + bytes - packed));
      at += align_up(bytes, kDirectIoAlignment);
      begins.push_back(ends.size() == 1 ? 0 : align_up(ends[ends.size() - 2], kDirectIoAlignment));
    }
  }
  const std::byte* bits(uint64_t n) const { return packed + begins[n]; }
  BitmapValues values(uint64_t n) const { return {bits(n) + bitmap.bits_bytes(neuron), packed + ends[n]}; }

  Encoding encoding;
  Bitmap bitmap;
  uint32_t groups = 0;
  uint64_t neuron = 0, count = 0;
  std::byte* dense = nullptr;
  std::byte* packed = nullptr;
  std::vector<uint64_t> begins, ends;
};

const Weights& weights(Encoding e) {
  static const Weights kHalves(Encoding::f16), kBytes(Encoding::q8_0);
  return e == Encoding::f16 ? kHalves : kBytes;
}

std::byte* target() {
  static std::byte* const kTarget = [] {
    std::byte* const at = map(kWeightBytes);
    std::memset(at, 1, kWeightBytes);
    return at;
  }();
  return kTarget;
}

// Calls work(neuron) for all neurons. `read`: the bytes of memory that this reads.
template <class Work>
void neurons(benchmark::State& state, const Weights& w, uint64_t read, const Work& work) {
  const auto threads = static_cast<uint32_t>(state.range(0));
  measure(state, "GB/s", 1e-9 * static_cast<double>(w.count * w.neuron), [&](uint32_t thread) {
    for (uint64_t n = w.count * thread / threads; n < w.count * (thread + 1) / threads; ++n) work(n, thread);
  });
  state.counters["read"] =
      benchmark::Counter(1e-9 * static_cast<double>(read), benchmark::Counter::kIsIterationInvariantRate);
}

void copy(benchmark::State& state, Encoding e) {
  const Weights& w = weights(e);
  neurons(state, w, w.count * w.neuron, [&](uint64_t n, uint32_t) {
    std::memcpy(target() + n * w.neuron, w.dense + n * w.neuron, w.neuron);
  });
}

void expand(benchmark::State& state, const ComputeKernels& kernels, Encoding e, bool to_memory) {
  const Weights& w = weights(e);
  neurons(state, w, w.ends.back(), [&](uint64_t n, uint32_t thread) {
    BitmapValues values = w.values(n);
    for (uint64_t at = 0; at < w.neuron; at += kCached) {
      const uint64_t bytes = std::min(kCached, w.neuron - at);
      values.at = kernels.expand_bitmap(w.bitmap, w.bits(n) + w.bitmap.bits_bytes(at), values,
                                        bytes / w.bitmap.element_bytes,
                                        target() + (to_memory ? n * w.neuron + at : thread * kCached));
    }
    if (values.at != values.end) std::abort();
  });
}

struct Input {
  explicit Input(uint32_t rows) : x(kCols), y(rows) {
    Random random(2);
    for (float& value : x) value = random.symmetric();
    quantized.resize(1, kCols);
    best_kernels().quantize_row(x.data(), 0, quantized, nullptr);
  }
  std::vector<float> x, y;
  QuantizedRows quantized;
  ExpandedLines scratch[2];
};

void gemv(benchmark::State& state, const ComputeKernels& kernels, Encoding e, bool int8, bool compressed) {
  const Weights& w = weights(e);
  Input input(static_cast<uint32_t>(w.count) * w.groups * kGroupRows);
  neurons(state, w, compressed ? w.ends.back() : w.count * w.neuron, [&](uint64_t n, uint32_t thread) {
    float* const y = input.y.data() + n * w.groups * kGroupRows;
    const BitmapRows rows = {e, w.bits(n), w.values(n), w.groups, kCols};
    const std::byte* const dense = w.dense + n * w.neuron;
    if (compressed && int8) {
      multiply_bitmap_int8(kernels, rows, input.quantized, 0, 1, y, 0, input.scratch[thread]);
    } else if (compressed) {
      multiply_bitmap(kernels, rows, input.x.data(), kCols, 1, y, 0, input.scratch[thread]);
    } else if (int8) {
      kernels.matmul_int8(e, dense, w.groups, kCols, input.quantized, 0, 1, y, 0);
    } else {
      kernels.matmul(e, dense, w.groups, kCols, input.x.data(), kCols, 1, y, 0);
    }
  });
}

void add_all() {
  const auto timed = [](const std::string& name, const auto& run) {
    benchmark::RegisterBenchmark(name.c_str(), run)
        ->ArgName("threads")
        ->Arg(1)
        ->Arg(2)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  };
  for (const Encoding e : {Encoding::f16, Encoding::q8_0}) {
    timed(fmt::format("copy/{}", name(e)), [e](benchmark::State& s) { copy(s, e); });
    for (const auto set : kernel_names()) {
      if (set == "scalar") continue;
      const ComputeKernels& kernels = *kernels_by_name(set);
      for (const bool to_memory : {false, true}) {
        timed(fmt::format("expand{}/{}/{}", to_memory ? "_to_memory" : "", name(e), set),
              [&kernels, e, to_memory](benchmark::State& s) { expand(s, kernels, e, to_memory); });
      }
      for (const bool int8 : {false, true}) {
        if (int8 && !is_quantized(e)) continue;
        for (const bool compressed : {false, true}) {
          timed(fmt::format("gemv_{}/{}{}/{}", compressed ? "bitmap" : "dense", name(e), int8 ? "_int8" : "",
                            set),
                [&kernels, e, int8, compressed](benchmark::State& s) {
                  gemv(s, kernels, e, int8, compressed);
                });
        }
      }
    }
  }
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  tierd::add_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
