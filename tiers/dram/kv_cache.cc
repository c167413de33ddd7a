#include "tiers/dram/kv_cache.h"

#include <cstring>

namespace tierd {

Result<KvCache> KvCache::create(const ComputePlan& plan) {
  TIERD_ASSIGN(ReservedMemory memory, ReservedMemory::reserve(kv_bytes(plan)));
  return KvCache(std::move(memory), plan);
}

KvCache::KvCache(ReservedMemory memory, const ComputePlan& plan)
    : memory_(std::move(memory)),
      shape_(plan.attention),
      context_(plan.context),
      sequences_(plan.sequences),
      encoding_(plan.kv),
      values_(uint64_t{shape_.n_layers} * sequences_ * context_ * shape_.kv_dim()) {}

uint64_t KvCache::index(uint32_t layer, uint32_t sequence, uint32_t position) const {
  TIERD_CHECK(layer < shape_.n_layers && sequence < sequences_ && position < context_);
  return ((uint64_t{layer} * sequences_ + sequence) * context_ + position) * shape_.kv_dim();
}

void KvCache::store(const ComputeKernels& kernels, uint32_t layer, uint32_t sequence, uint32_t position,
                    const float* keys, const float* values) {
  const uint64_t at = index(layer, sequence, position);
  const uint32_t n = shape_.kv_dim();
  if (encoding_ == KvEncoding::f16) {
    auto* base = reinterpret_cast<uint16_t*>(memory_.data());
    kernels.f32_to_f16(keys, n, base + at);
    kernels.f32_to_f16(values, n, base + values_ + at);
  } else {
    auto* base = reinterpret_cast<float*>(memory_.data());
    std::memcpy(base + at, keys, n * sizeof(float));
    std::memcpy(base + values_ + at, values, n * sizeof(float));
  }
}

void KvCache::attend(const ComputeKernels& kernels, uint32_t layer, uint32_t window, uint32_t sequence,
                     uint32_t position, uint32_t head, const ScoreShape& scores, const float* query,
                     float* scratch, float* out) const {
  const uint32_t last = position + 1;
  const uint32_t first = window != 0 && last > window ? last - window : 0;
  const uint32_t kv_head = head / (shape_.n_heads / shape_.n_kv_heads);
  const uint64_t at = index(layer, sequence, 0) + uint64_t{kv_head} * shape_.head_dim;
  const size_t stride = shape_.kv_dim();
  if (encoding_ == KvEncoding::f16) {
    const auto* base = reinterpret_cast<const uint16_t*>(memory_.data());
    kernels.attend_f16(query, base + at, base + values_ + at, stride, first, last, shape_.head_dim, scores,
                       scratch, out);
  } else {
    const auto* base = reinterpret_cast<const float*>(memory_.data());
    kernels.attend_f32(query, base + at, base + values_ + at, stride, first, last, shape_.head_dim, scores,
                       scratch, out);
  }
}

}  // namespace tierd
