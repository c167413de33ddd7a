// Measures the kernels of tiers/gpu/cuda on this machine's GPU, and a copy inside its memory for comparison.
// Prints one JSON object on standard output. tests/bench/gpu runs it.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "core/agent/pool.h"
#include "core/base/random.h"
#include "core/model/layout/bitmap.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/row_group.h"
#include "tiers/dram/reserved_memory.h"
#include "tiers/gpu/cuda/bitmap.h"
#include "tiers/gpu/cuda/buffers.h"
#include "tiers/gpu/cuda/outcome.h"
#include "tiers/gpu/cuda/registered_memory.h"
#include "tiers/gpu/cuda/rows.h"
#include "tiers/gpu/cuda/transfer.h"
#include "tiers/gpu/team_work.h"

namespace tierd::cuda {
namespace {

constexpr uint64_t kBytes = uint64_t{1} << 30;  // far more than a cache holds
constexpr int kRepeats = 15;
constexpr uint32_t kIn = 4096;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "gpu_kernels_bench: %s: %s\n", what, text_of(error).c_str());
  std::exit(1);
}

class Timer {
 public:
  Timer() {
    check(stream_.create(), "stream");
    check(cudaEventCreate(&begin_), "event");
    check(cudaEventCreate(&end_), "event");
  }
  cudaStream_t stream() const { return stream_.get(); }
  // Returns the median seconds of the work that `work` queues.
  template <class Work>
  double seconds(const Work& work) {
    std::vector<double> all;
    for (int i = 0; i < kRepeats + 2; ++i) {
      check(cudaEventRecord(begin_, stream()), "record");
      work();
      check(cudaEventRecord(end_, stream()), "record");
      check(cudaEventSynchronize(end_), "wait");
      float ms = 0;
      check(cudaEventElapsedTime(&ms, begin_, end_), "time");
      if (i >= 2) all.push_back(ms / 1e3);
    }
    std::ranges::sort(all);
    return all[all.size() / 2];
  }

 private:
  Stream stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// Launches once over `matrices` operators of n_out rows each, contiguous in memory, or once for each.
double product_rate(Timer& timer, Encoding e, uint32_t n_out, uint32_t tokens, bool apart,
                    const std::byte* memory) {
  const uint64_t matrix = n_out / kGroupRows * group_bytes(e, kIn);
  const auto matrices = static_cast<uint32_t>(std::max<uint64_t>(1, kBytes / 2 / matrix));
  std::vector<Unit> list;
  for (uint32_t m = 0; m < matrices; ++m) list.push_back({m, static_cast<uint32_t>(m * matrix / kPlaceUnit)});
  DeviceBytes units, x, y;
  check(allocate(list.size() * sizeof(Unit), units), "allocate");
  check(cudaMemcpy(units.get(), list.data(), list.size() * sizeof(Unit), cudaMemcpyHostToDevice), "copy");
  check(allocate(uint64_t{tokens} * kIn * 4, x), "allocate");
  check(cudaMemset(x.get(), 0x3c, uint64_t{tokens} * kIn * 4), "set");
  const uint64_t rows = uint64_t{matrices} * n_out;
  check(allocate(rows * tokens * 4, y), "allocate");
  RowProduct product;
  product.memory = memory;
  product.units = reinterpret_cast<const Unit*>(units.get());
  product.n_units = apart ? 1 : matrices;
  product.groups = n_out / kGroupRows;
  product.n_in = kIn;
  product.rows_of_unit = n_out;
  product.row_end = static_cast<uint32_t>(rows);
  product.x = reinterpret_cast<const float*>(x.get());
  product.ldx = kIn;
  product.y = reinterpret_cast<float*>(y.get());
  product.ldy = static_cast<uint32_t>(rows);
  product.tokens = tokens;
  check(cudaDeviceSynchronize(), "wait");
  const double seconds = timer.seconds([&] {
    for (uint32_t m = 0; m < (apart ? matrices : 1); ++m) {
      RowProduct one = product;
      if (apart) one.units += m;
      check(multiply_rows(e, one, timer.stream()), "launch");
    }
  });
  return static_cast<double>(matrices * matrix) / seconds;
}

// A matrix of row groups of kIn columns, half of it zero, whose neurons are one group each, stored as
// bitmaps. Their number fills kBytes / 2 when dense. All are equal, and each has its own place.
class PrunedMatrix {
 public:
  PrunedMatrix(Encoding e, std::byte* memory) : encoding_(e), bitmap_(*Bitmap::of(e, true)) {
    Random random(2);
    std::vector<float> rows(size_t{kGroupRows} * kIn);
    for (float& value : rows) value = random.below(2) == 0 ? 0.0F : random.symmetric();
    std::vector<std::byte> plain(encoded_bytes(e, rows.size())), group(group_bytes(e, kIn));
    encode(e, rows, plain);
    pack_row_group(e, kGroupRows, kIn, plain, group);
    std::vector<std::byte> kept(compressed_bytes(bitmap_, group));
    compress(bitmap_, group, kept);
    const NeuronSize size{static_cast<uint32_t>(kept.size()),
                          static_cast<uint32_t>(bitmap_.bits_bytes(group.size()))};
    const uint64_t slot = align_up(kept.size(), kPlaceUnit);
    const auto n = static_cast<uint32_t>(kBytes / 2 / group.size());
    std::vector<Unit> list;
    for (uint32_t u = 0; u < n; ++u) {
      list.push_back({u, static_cast<uint32_t>(u * slot / kPlaceUnit)});
      check(cudaMemcpy(memory + u * slot, kept.data(), kept.size(), cudaMemcpyHostToDevice), "copy");
    }
    const std::vector<NeuronSize> sizes(n, size);
    dense_ = group.size();
    kept_ = kept.size();
    const uint64_t words = n * BitmapUnits::count_words(size.bits / plain_tile(bitmap_) + 1);
    check(allocate(list.size() * sizeof(Unit), list_), "allocate");
    check(allocate(list.size() * sizeof(Unit), placed_), "allocate");
    check(allocate(n * sizeof(NeuronSize), sizes_), "allocate");
    check(allocate(words * 4, counts_), "allocate");
    check(allocate(4, malformed_), "allocate");
    check(cudaMemset(malformed_.get(), 0, 4), "set");
    check(cudaMemcpy(list_.get(), list.data(), list.size() * sizeof(Unit), cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(sizes_.get(), sizes.data(), n * sizeof(NeuronSize), cudaMemcpyHostToDevice), "copy");
    check(cudaDeviceSynchronize(), "wait");
    units_ = {.memory = memory,
              .units = reinterpret_cast<const Unit*>(list_.get()),
              .n_units = n,
              .sizes = reinterpret_cast<const NeuronSize*>(sizes_.get()),
              .bitmap = bitmap_,
              .counts = reinterpret_cast<uint32_t*>(counts_.get()),
              .malformed = reinterpret_cast<uint32_t*>(malformed_.get())};
  }

  // Returns the bytes a second that are read and written. The time includes counting bits; the bytes do not.
  double expand_rate(Timer& timer, std::byte* out) const {
    const BitmapUnits units = in_tiles(plain_tile(bitmap_), units_.n_units);
    const ExpandedUnits to{out, reinterpret_cast<Unit*>(placed_.get()), dense_};
    const double seconds = timer.seconds([&] {
      check(count_bitmaps(units, timer.stream()), "launch");
      check(expand_bitmaps(units, to, timer.stream()), "launch");
    });
    return static_cast<double>(units.n_units * (kept_ + dense_)) / seconds;
  }
  // Returns the rate of products by a vector over matrices of n_out rows, one after the other.
  double product_rate(Timer& timer, uint32_t n_out) const {
    DeviceBytes x, y;
    check(allocate(kIn * 4, x), "allocate");
    check(cudaMemset(x.get(), 0x3c, kIn * 4), "set");
    check(allocate(uint64_t{units_.n_units} * kGroupRows * 4, y), "allocate");
    check(cudaDeviceSynchronize(), "wait");
    const uint32_t of_one = std::min(n_out / kGroupRows, units_.n_units), matrices = units_.n_units / of_one;
    const double seconds = timer.seconds([&] {
      for (uint32_t m = 0; m < matrices; ++m) {
        BitmapUnits units = in_tiles(row_tile(bitmap_), of_one);
        units.units += m * of_one;
        const RowProduct product{.memory = units.memory,
                                 .units = units.units,
                                 .n_units = of_one,
                                 .groups = 1,
                                 .n_in = kIn,
                                 .rows_of_unit = kGroupRows,
                                 .row_end = units_.n_units * kGroupRows,
                                 .x = reinterpret_cast<const float*>(x.get()),
                                 .y = reinterpret_cast<float*>(y.get()),
                                 .ldx = kIn,
                                 .ldy = units_.n_units * kGroupRows,
                                 .tokens = 1};
        check(count_bitmaps(units, timer.stream()), "launch");
        check(multiply_bitmap_rows(encoding_, product, units, timer.stream()), "launch");
      }
    });
    return static_cast<double>(uint64_t{matrices} * of_one * kept_) / seconds;
  }
  bool malformed() const {
    uint32_t run = 0;
    check(cudaMemcpy(&run, malformed_.get(), 4, cudaMemcpyDeviceToHost), "copy");
    return run != 0;
  }

 private:
  BitmapUnits in_tiles(uint32_t tile, uint32_t n_units) const {
    BitmapUnits units = units_;
    units.tile = tile;
    units.tiles = static_cast<uint32_t>(divide_up(bitmap_.bits_bytes(dense_), tile));
    units.n_units = n_units;
    return units;
  }

  Encoding encoding_;
  Bitmap bitmap_;
  uint64_t dense_ = 0, kept_ = 0;
  DeviceBytes list_, placed_, sizes_, counts_, malformed_;
  BitmapUnits units_;
};

// Copies slots of the host to the device as a move does. The slots are in huge pages, as in the DRAM tier.
class Moves {
 public:
  explicit Moves(std::byte* there) : there_(there) {
    auto memory = ReservedMemory::reserve(kMoved);
    if (!memory.ok()) {
      std::fprintf(stderr, "gpu_kernels_bench: %s\n", memory.error().line().c_str());
      std::exit(1);
    }
    here_ = std::move(*memory);
    here_.use(kMoved, {&kAll, 1});
    std::memset(here_.data(), 1, kMoved);
    pools_.add_memory(1, here_.bytes());
  }
  ~Moves() { pools_.keep_pages(1, {}); }
  Moves(const Moves&) = delete;
  Moves& operator=(const Moves&) = delete;

  // Returns the bytes a second of moves that read slots in place or gather them into pinned blocks. `so`: the
  // requested way was used.
  double rate(Timer& timer, HostWork& host, uint64_t slot, bool registered, bool& so) {
    pools_.keep_pages(1, registered ? std::vector{kAll} : std::vector<PageRange>());
    std::vector<Unit> units;
    for (uint64_t at = 0; at + slot <= kMoved; at += slot)
      units.push_back({static_cast<uint32_t>(at / kPlaceUnit), static_cast<uint32_t>(at / kPlaceUnit)});
    Transfer transfer(registered_);
    check(transfer.create(), "transfer");
    const double seconds = timer.seconds([&] {
      transfer.begin({units, slot, {}}, here_.data(), there_, host);
      for (bool over = false; !over;) check(transfer.advance(timer.stream(), over), "transfer");
    });
    so = (registered ? transfer.counts().gathered : transfer.counts().read_in_place) == 0;
    return static_cast<double>(units.size() * slot) / seconds;
  }
  // Returns the bytes a second of registering memory, one piece after the other.
  double registering_rate() {
    pools_.keep_pages(1, {});
    pools_.keep_pages(1, {kAll});
    std::vector<Fetch> fetches;
    const auto before = std::chrono::steady_clock::now();
    check(registered_.reach(here_.data(), kMoved, 0, fetches) ? cudaSuccess : cudaErrorMemoryAllocation,
          "registering");
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - before;
    return static_cast<double>(kMoved) / seconds.count();
  }

 private:
  static constexpr uint64_t kMoved = 256 << 20;
  static constexpr PageRange kAll{0, kMoved};
  std::byte* const there_;
  ReservedMemory here_;
  PoolTable pools_;
  RegisteredMemory registered_{pools_, 0, "gpu_kernels_bench"};
};

int run() {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "device");
  Timer timer;
  DeviceBytes from, to;
  check(allocate(kBytes, from), "allocate");
  check(allocate(kBytes, to), "allocate");
  // The weights are finite numbers with moderate scales in every encoding.
  std::vector<uint32_t> pattern(kBytes / 4);
  Random random(1);
  for (uint32_t& word : pattern) word = (static_cast<uint32_t>(random.next()) & 0x03ff03ffU) | 0x30003000U;
  check(cudaMemcpy(from.get(), pattern.data(), kBytes, cudaMemcpyHostToDevice), "copy");
  check(cudaDeviceSynchronize(), "wait");
  const double copied = timer.seconds([&] {
    check(cudaMemcpyAsync(to.get(), from.get(), kBytes, cudaMemcpyDeviceToDevice, timer.stream()), "copy");
  });
  const double copy_rate = 2 * static_cast<double>(kBytes) / copied;
  PinnedBytes pinned;
  check(allocate(kBytes / 4, pinned), "pinned");
  const double up = timer.seconds([&] {
    check(cudaMemcpyAsync(to.get(), pinned.get(), kBytes / 4, cudaMemcpyHostToDevice, timer.stream()),
          "copy");
  });
  fmt::print(
      "{{\"device\": \"{}\", \"sm\": {}{}, \"multiprocessors\": {}, \"copy_bytes_per_second\": {:.4g}, "
      "\"pinned_to_device_bytes_per_second\": {:.4g}",
      properties.name, properties.major, properties.minor, properties.multiProcessorCount, copy_rate,
      static_cast<double>(kBytes) / 4 / up);
  const uint32_t threads = std::min(16U, std::max(1U, std::thread::hardware_concurrency()));
  TeamWork host(best_kernels(), std::make_unique<Team>(Team::Options{.workers = threads}));
  Moves moves(to.get());
  fmt::print(", \"moves\": [");
  const char* comma = "";
  for (const uint64_t slot : {uint64_t{6912}, uint64_t{64} << 10, uint64_t{4} << 20}) {
    bool in_place = false, gathered = false;
    const double by_blocks = moves.rate(timer, host, slot, false, gathered);
    const double read = moves.rate(timer, host, slot, true, in_place);
    fmt::print(
        "{}{{\"slot_bytes\": {}, \"registered_bytes_per_second\": {:.4g}, "
        "\"pinned_blocks_bytes_per_second\": {:.4g}, \"as_asked\": {}}}",
        comma, slot, read, by_blocks, in_place && gathered);
    comma = ", ";
  }
  fmt::print("], \"registering_bytes_per_second\": {:.4g}", moves.registering_rate());
  fmt::print(", \"products\": [");
  comma = "";
  for (const Encoding e : kAllEncodings) {
    const double whole = product_rate(timer, e, 4096, 1, false, from.get());
    const double small = product_rate(timer, e, 4096, 1, true, from.get());
    const double wide = product_rate(timer, e, 22016, 1, true, from.get());
    const double many = product_rate(timer, e, 4096, 128, true, from.get());
    const double multiplied = many / encoded_bytes(e, 256) * 256 * 128;
    fmt::print(
        "{}{{\"encoding\": \"{}\", \"one_launch_bytes_per_second\": {:.4g}, \"of_copy\": {:.3f}, "
        "\"4096x4096_of_copy\": {:.3f}, \"22016x4096_of_copy\": {:.3f}, "
        "\"128_tokens_multiply_adds_per_second\": {:.4g}}}",
        comma, name(e), whole, whole / copy_rate, small / copy_rate, wide / copy_rate, multiplied);
    comma = ", ";
    std::fflush(stdout);
  }
  fmt::print("], \"bitmaps\": [");
  comma = "";
  for (const Encoding e : {Encoding::f16, Encoding::q8_0}) {
    const PrunedMatrix pruned(e, from.get());
    const double expanded = pruned.expand_rate(timer, to.get());
    const double whole = pruned.product_rate(timer, ~0U), wide = pruned.product_rate(timer, 22016);
    fmt::print(
        "{}{{\"encoding\": \"{}\", \"expanded_bytes_per_second\": {:.4g}, \"expanded_of_copy\": {:.3f}, "
        "\"one_launch_of_copy\": {:.3f}, \"22016x4096_of_copy\": {:.3f}, \"malformed\": {}}}",
        comma, name(e), expanded, expanded / copy_rate, whole / copy_rate, wide / copy_rate,
        pruned.malformed());
    comma = ", ";
    std::fflush(stdout);
  }
  fmt::print("]}}\n");
  return 0;
}

}  // namespace
}  // namespace tierd::cuda

int main() {
  return tierd::cuda::run();
}
