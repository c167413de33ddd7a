#include "tools/tier/calibrate/kernel_rates.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/time.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/team.h"

namespace tierd {
namespace {

constexpr uint32_t kCols = 4096;
constexpr uint64_t kWeightBytes = uint64_t{256} << 20;  // well above the caches
constexpr uint64_t kCallBytes = uint64_t{32} << 20;     // the size of some operators of a model
constexpr uint64_t kOfColumns = 2;  // one column of so many is used: the papers leave out half and more
constexpr uint32_t kGemmGroups = 4096 / kGroupRows;
constexpr uint32_t kGemmTokens = 64;
constexpr uint64_t kHugePage = uint64_t{2} << 20;

struct FreeWeights {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// The interval between calls: none, or a pause as long as a wait for a disk.
enum class Calls : uint8_t { at_once, after_pauses };
constexpr std::chrono::milliseconds kPause(5);

// Returns calls per second of the calls' own time.
double repeat(Calls calls, double seconds, const std::function<void()>& call) {
  call();  // the first one wakes threads and fills caches
  const uint64_t begin_ns = now_ns();
  uint64_t n = 0, busy_ns = 0;
  while (n == 0 || static_cast<double>(now_ns() - begin_ns) < seconds * 1e9) {
    if (calls == Calls::after_pauses) std::this_thread::sleep_for(kPause);
    const uint64_t from_ns = now_ns();
    call();
    busy_ns += now_ns() - from_ns;
    ++n;
  }
  return static_cast<double>(n) * 1e9 / static_cast<double>(busy_ns);
}

// The best kernels of this processor, and weights for them: the same bytes for each encoding.
class Kernels {
 public:
  // Error: no_space, if memory or threads are not available.
  static Result<Kernels> create(uint32_t threads) {
    Kernels kernels;
    kernels.weights_.reset(static_cast<std::byte*>(std::aligned_alloc(kHugePage, kWeightBytes)));
    if (kernels.weights_ == nullptr)
      return Error{Code::no_space, "kernel rates",
                   fmt::format("cannot allocate {} B for weights", kWeightBytes)};
    ::madvise(kernels.weights_.get(), kWeightBytes, MADV_HUGEPAGE);
    // These bytes are a small normal number in every encoding, as scale or as value.
    std::memset(kernels.weights_.get(), 0x11, kWeightBytes);
    try {
      kernels.team_ = std::make_unique<Team>(Team::Options{.workers = threads});
    } catch (const std::system_error& error) {
      return Error{Code::no_space, "kernel rates", fmt::format("{} threads: {}", threads, error.what())};
    }
    kernels.quantized_.resize(kGemmTokens, kCols);
    for (uint32_t row = 0; row < kGemmTokens; ++row)
      kernels.best_.quantize_row(kernels.x_.data(), row, kernels.quantized_, nullptr);
    return kernels;
  }

  // Multiplies all weights, in turn, by one token; returns bytes per second.
  double gemv(Encoding e, bool int8, Calls calls, double seconds) {
    const uint64_t groups = kCallBytes / group_bytes(e, kCols);
    uint64_t at = 0;
    const auto multiply_next = [&] {
      multiply(e, int8, at, groups, 1);
      at = (at + groups) * group_bytes(e, kCols) + kCallBytes <= kWeightBytes ? at + groups : 0;
    };
    return repeat(calls, seconds, multiply_next) * static_cast<double>(groups * group_bytes(e, kCols));
  }

  // Multiplies weights that stay in caches by many tokens; returns multiply-adds per second.
  double gemm(Encoding e, bool int8, double seconds) {
    return repeat(Calls::at_once, seconds, [&] { multiply(e, int8, 0, kGemmGroups, kGemmTokens); }) *
           kGemmGroups * kGroupRows * kCols * kGemmTokens;
  }

  // Adds runs of columns, as of an operator's channels; workers share the outputs. Returns the bytes per
  // second of used columns; 0 for encodings that columns cannot have.
  double columns(Encoding e, bool int8, Calls calls, double seconds) {
    if (!has_columns(e)) return 0;
    const uint64_t bytes = encoded_bytes(e, kCols);
    std::vector<const std::byte*> columns;
    for (uint64_t at = 0; at + bytes <= kWeightBytes; at += kOfColumns * bytes)
      columns.push_back(weights_.get() + at);
    const size_t of_call = kCallBytes / bytes;
    size_t first = 0;
    y_.resize(kCols);
    constexpr uint64_t kBlocks = kCols / kQuantBlock;
    const auto add_next = [&] {
      const auto some = std::span(columns).subspan(first, of_call);
      team_->run(kBlocks, (kBlocks + team_->workers() - 1) / team_->workers(), UINT64_MAX,
                 [&](uint64_t begin, uint64_t end, uint32_t) {
                   add_columns(e, int8, some, static_cast<uint32_t>(begin * kQuantBlock),
                               static_cast<uint32_t>(end * kQuantBlock));
                 });
      first = first + 2 * of_call <= columns.size() ? first + of_call : 0;
    };
    return repeat(calls, seconds, add_next) * static_cast<double>(of_call * bytes);
  }

 private:
  Kernels() = default;

  void multiply(Encoding e, bool int8, uint64_t first, uint64_t groups, uint32_t tokens) {
    const size_t rows = groups * kGroupRows;
    y_.resize(rows * tokens);
    team_->run(groups, 4, UINT64_MAX, [&](uint64_t begin, uint64_t end, uint32_t) {
      const std::byte* from = weights_.get() + (first + begin) * group_bytes(e, kCols);
      const auto n = static_cast<uint32_t>(end - begin);
      float* to = y_.data() + begin * kGroupRows;
      if (int8) {
        best_.matmul_int8(e, from, n, kCols, quantized_, 0, tokens, to, rows);
      } else {
        best_.matmul(e, from, n, kCols, x_.data(), kCols, tokens, to, rows);
      }
    });
  }

  void add_columns(Encoding e, bool int8, std::span<const std::byte* const> columns, uint32_t first,
                   uint32_t last) {
    constexpr size_t kRun = kPartialNeurons / kOfColumns;
    const auto run_at = [&](size_t at) {
      const auto left = columns.subspan(std::min(at, columns.size()));
      return left.first(std::min(left.size(), kRun));
    };
    for (size_t at = 0; at < columns.size(); at += kRun) {
      const ColumnRun run = {e, kCols, run_at(at), run_at(at + kRun)};
      if (int8) {
        best_.add_weighted_int8(run, first, last, x_.data(), 0, 1, y_.data(), 0, nullptr);
      } else {
        best_.add_weighted(run, first, last, x_.data(), 0, 1, y_.data(), 0);
      }
    }
  }

  const ComputeKernels& best_ = best_kernels();
  std::unique_ptr<std::byte[], FreeWeights> weights_;
  std::unique_ptr<Team> team_;
  std::vector<float> x_ = std::vector<float>(size_t{kGemmTokens} * kCols, 0.5f);
  QuantizedRows quantized_;
  std::vector<float> y_;
};

}  // namespace

Result<std::vector<KernelRate>> measure_kernels(uint32_t threads, double seconds) {
  TIERD_ASSIGN(Kernels kernels, Kernels::create(threads));
  std::vector<KernelRate> rates;
  for (const Encoding e : kAllEncodings) {
    for (const bool int8 : {false, true}) {
      if (int8 && !is_quantized(e)) continue;
      rates.push_back({.encoding = e,
                       .int8_activations = int8,
                       .gemv = kernels.gemv(e, int8, Calls::at_once, seconds),
                       .gemm = kernels.gemm(e, int8, seconds),
                       .columns = kernels.columns(e, int8, Calls::at_once, seconds),
                       .gemv_after_wait = kernels.gemv(e, int8, Calls::after_pauses, seconds),
                       .columns_after_wait = kernels.columns(e, int8, Calls::after_pauses, seconds)});
    }
  }
  return rates;
}

}  // namespace tierd
