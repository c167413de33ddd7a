#include "tools/tier-calibrate/kernel_rates.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>

#include "core/base/time.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/team.h"

namespace tierd {
namespace {

constexpr uint32_t kCols = 4096;
constexpr uint64_t kWeightBytes = uint64_t{256} << 20;  // well above the caches
constexpr uint32_t kGemmGroups = 4096 / kGroupRows;
constexpr uint32_t kGemmTokens = 64;
constexpr uint64_t kHugePage = uint64_t{2} << 20;

struct FreeWeights {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// Calls per second.
double repeat(double seconds, const std::function<void()>& call) {
  call();  // the first one wakes threads and fills caches
  const uint64_t begin_ns = now_ns();
  const uint64_t end_ns = begin_ns + static_cast<uint64_t>(seconds * 1e9);
  uint64_t calls = 0;
  uint64_t last_ns = begin_ns;
  for (; last_ns < end_ns || calls == 0; last_ns = now_ns()) {
    call();
    ++calls;
  }
  return static_cast<double>(calls) * 1e9 / static_cast<double>(last_ns - begin_ns);
}

}  // namespace

Result<std::vector<KernelRate>> measure_kernels(uint32_t threads, double seconds) {
  const Error no_memory{Code::no_space, "kernel rates",
                        fmt::format("no memory for {} B of weights", kWeightBytes)};
  const std::unique_ptr<std::byte[], FreeWeights> weights(
      static_cast<std::byte*>(std::aligned_alloc(kHugePage, kWeightBytes)));
  if (weights == nullptr) return no_memory;
  ::madvise(weights.get(), kWeightBytes, MADV_HUGEPAGE);
  // As scale or value these bytes are a small normal number in every encoding.
  std::memset(weights.get(), 0x11, kWeightBytes);

  std::optional<Team> team;
  try {
    team.emplace(Team::Options{.workers = threads});
  } catch (const std::system_error& error) {
    return Error{Code::no_space, "kernel rates", fmt::format("{} threads: {}", threads, error.what())};
  }
  const ComputeKernels& kernels = best_kernels();
  const std::vector<float> x(size_t{kGemmTokens} * kCols, 0.5f);
  QuantizedRows quantized;
  quantized.resize(kGemmTokens, kCols);
  for (uint32_t row = 0; row < kGemmTokens; ++row) kernels.quantize_row(x.data(), row, quantized, nullptr);

  std::vector<float> y;
  const auto multiply = [&](Encoding e, bool int8, uint64_t groups, uint32_t tokens) {
    const size_t rows = groups * kGroupRows;
    y.resize(rows * tokens);
    const auto part = [&](uint64_t begin, uint64_t end, uint32_t) {
      const std::byte* from = weights.get() + begin * group_bytes(e, kCols);
      const auto n = static_cast<uint32_t>(end - begin);
      float* to = y.data() + begin * kGroupRows;
      if (int8) {
        kernels.matmul_int8(e, from, n, kCols, quantized, 0, tokens, to, rows);
      } else {
        kernels.matmul(e, from, n, kCols, x.data(), kCols, tokens, to, rows);
      }
    };
    team->run(groups, 4, UINT64_MAX, part);
  };

  std::vector<KernelRate> points;
  const auto measure = [&](Encoding e, bool int8) {
    const uint64_t groups = kWeightBytes / group_bytes(e, kCols);
    const double gemv = repeat(seconds, [&] { multiply(e, int8, groups, 1); });
    const double gemm = repeat(seconds, [&] { multiply(e, int8, kGemmGroups, kGemmTokens); });
    points.push_back({.encoding = e,
                      .int8_activations = int8,
                      .gemv = gemv * static_cast<double>(groups * group_bytes(e, kCols)),
                      .gemm = gemm * kGemmGroups * kGroupRows * kCols * kGemmTokens});
  };
  for (const Encoding e : kAllEncodings) {
    measure(e, false);
    if (is_quantized(e)) measure(e, true);
  }
  return points;
}

}  // namespace tierd
