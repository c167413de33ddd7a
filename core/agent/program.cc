#include "core/agent/program.h"

#include <algorithm>

#include "core/base/align.h"
#include "core/model/layout/row_group.h"

namespace tierd {

std::vector<uint64_t> buffer_offsets(const ComputePlan& plan) {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (const BufferSpec& buffer : plan.buffers) {
    offsets.push_back(end);
    const uint64_t rows = buffer.rows == 0 ? plan.max_rows : std::min(buffer.rows, plan.max_rows);
    end += rows * buffer_stride(buffer) * sizeof(float);
  }
  offsets.push_back(end);
  return offsets;
}

uint32_t buffer_stride(const BufferSpec& buffer) {
  return static_cast<uint32_t>(align_up(buffer.width, kGroupRows));
}

uint64_t activation_bytes(const ComputePlan& plan) {
  uint64_t widest_in = 0;
  for (const SiteWork& site : plan.sites) widest_in = std::max<uint64_t>(widest_in, inputs(site.cut));
  // int8 values, and a scale and two sums for each block of 32.
  const uint64_t quantized = plan.int8_activations ? widest_in + widest_in / kQuantBlock * 12 : 0;
  return buffer_offsets(plan).back() + plan.max_rows * quantized;
}

uint64_t kv_bytes(const ComputePlan& plan) {
  const uint64_t element = plan.kv == KvEncoding::f16 ? 2 : 4;
  return 2ull * plan.attention.n_layers * plan.sequences * plan.context * plan.attention.kv_dim() * element;
}

}  // namespace tierd
