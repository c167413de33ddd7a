#include "tiers/gpu/cuda/batch_products.h"

#include <algorithm>
#include <variant>

#include "core/base/align.h"
#include "tiers/gpu/cuda/bf16_parts.h"
#include "tiers/gpu/cuda/outcome.h"

namespace tierd::cuda {
namespace {

// Lines are padded to the multiple that tensor cores need, and so begin aligned.
constexpr uint32_t kLine = 16;
constexpr uint32_t kPart = 2;  // bytes of a bf16 number; each value has two

uint32_t line_of(uint32_t n_in) {
  return static_cast<uint32_t>(align_up(n_in, kLine));
}
uint64_t line_bytes(uint32_t n_in) {
  return uint64_t{2} * kPart * line_of(n_in);
}
uint32_t lines_of(uint32_t tokens) {
  return static_cast<uint32_t>(align_up(tokens, kLine));
}
// Row groups that are unpacked at a time, at least one.
uint32_t groups_in(uint64_t bytes, uint32_t n_in) {
  return static_cast<uint32_t>(std::max<uint64_t>(1, bytes / (line_bytes(n_in) * kGroupRows)));
}

struct Scratch {
  uint64_t weights = 0;
  uint64_t tokens = 0;
  uint64_t results = 0;
};
Scratch scratch_of(const ComputePlan& plan, uint64_t unpacked_bytes) {
  Scratch most;
  for (const SiteWork& site : plan.sites) {
    const auto* const cut = std::get_if<Rows>(&site.cut);
    if (cut == nullptr || site.gather) continue;
    const uint64_t rows = neurons(site.cut) * align_up(uint64_t{cut->rows}, kGroupRows);
    const uint64_t at_once =
        std::min<uint64_t>(rows, uint64_t{groups_in(unpacked_bytes, cut->n_in)} * kGroupRows);
    most.weights = std::max(most.weights, at_once * line_bytes(cut->n_in));
    most.tokens = std::max(most.tokens, lines_of(plan.max_rows) * line_bytes(cut->n_in));
    most.results = std::max(most.results, lines_of(plan.max_rows) * at_once * sizeof(float));
  }
  return most;
}

// The first half of the lines has the high parts, the second half the low parts.
Bf16Lines lines_in(const DeviceBytes& bytes, uint32_t lines, uint32_t ld) {
  auto* const high = reinterpret_cast<uint16_t*>(bytes.get());
  return {.high = high, .low = high + uint64_t{lines} * ld, .ld = ld};
}

}  // namespace

uint64_t BatchProducts::device_bytes(const ComputePlan& plan, uint32_t least) {
  if (least == 0 || plan.max_rows < least) return 0;
  const Scratch scratch = scratch_of(plan, kUnpackedBytes);
  return scratch.weights + scratch.tokens + scratch.results + Bf16Products::kWorkspaceBytes;
}

Result<std::unique_ptr<BatchProducts>> BatchProducts::create(const ComputePlan& plan, uint32_t least,
                                                             uint64_t unpacked_bytes) {
  std::unique_ptr<BatchProducts> batch;
  const Scratch scratch = scratch_of(plan, unpacked_bytes);
  if (least == 0 || plan.max_rows < least || scratch.weights == 0) return batch;
  batch.reset(new BatchProducts(least));
  batch->unpacked_bytes_ = unpacked_bytes;
  TIERD_ASSIGN(batch->products_, Bf16Products::create());
  Outcome outcome;
  outcome.then([&] { return allocate(scratch.weights, batch->weights_); });
  outcome.then([&] { return allocate(scratch.tokens, batch->tokens_); });
  outcome.then([&] { return allocate(scratch.results, batch->results_); });
  if (outcome.ok()) return batch;
  (void)cudaGetLastError();
  return Error{Code::no_space, batch->name(), "cannot allocate memory of the device for unpacked weights"};
}

uint32_t BatchProducts::groups_at_once(uint32_t n_in) const {
  return groups_in(unpacked_bytes_, n_in);
}

bool BatchProducts::makes(Encoding encoding, const RowProduct& p) {
  if (p.tokens < least_ || encoding == Encoding::f32) return false;
  if (p.masks != nullptr || p.choice != nullptr || p.x_lines != 0 || p.y_lines != 0) return false;
  const uint32_t all = p.n_units * p.groups;
  const uint32_t most = std::min(all, groups_at_once(p.n_in));
  const uint32_t last = (all - 1) % most + 1;
  return products_->makes(most * kGroupRows, lines_of(p.tokens), line_of(p.n_in)) &&
         (last == most || products_->makes(last * kGroupRows, lines_of(p.tokens), line_of(p.n_in)));
}

// The low products are added first.
cudaError_t BatchProducts::multiply(Encoding encoding, const RowProduct& p, cudaStream_t stream) {
  const uint32_t k = line_of(p.n_in), n = lines_of(p.tokens), all = p.n_units * p.groups;
  const Bf16Lines x = lines_in(tokens_, n, k);
  auto* const results = reinterpret_cast<float*>(results_.get());
  Outcome outcome;
  outcome.then([&] { return split_tokens(p, n, x, stream); });
  for (uint32_t first = 0; first < all;) {
    const SomeGroups groups{.product = p, .first = first, .n = std::min(all - first, groups_at_once(p.n_in))};
    const uint32_t m = groups.n * kGroupRows;
    Bf16Lines w = lines_in(weights_, m, k);
    if (encoding == Encoding::bf16) w.low = nullptr;
    outcome.then([&] { return unpack_groups(encoding, groups, w, stream); });
    const auto add = [&](const uint16_t* a, const uint16_t* b, bool to_others) {
      outcome.then([&] {
        return products_->multiply({.a = a, .b = b, .c = results, .m = m, .n = n, .k = k}, to_others, stream);
      });
    };
    if (w.low != nullptr) add(w.low, x.high, false);
    add(w.high, x.low, w.low != nullptr);
    add(w.high, x.high, true);
    outcome.then([&] { return place_results(groups, results, m, stream); });
    first += groups.n;
  }
  return outcome.error();
}

}  // namespace tierd::cuda
