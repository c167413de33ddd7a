#include "tiers/compute/kernels.h"

#include <array>

#include "core/base/check.h"
#include "tiers/compute/kernel_sets.h"

namespace tierd {
namespace {

// The kernel sets that this processor can run, best first.
struct Sets {
  Sets() {
    for (const ComputeKernels* set : {avx512_vnni_kernels(), avx2_kernels(), &scalar_kernels()}) {
      if (set == nullptr) continue;
      kernels[count] = set;
      names[count++] = set->name;
    }
  }
  std::array<const ComputeKernels*, 3> kernels{};
  std::array<std::string_view, 3> names{};
  size_t count = 0;
};

const Sets& sets() {
  static const Sets kSets;
  return kSets;
}

}  // namespace

void QuantizedRows::resize(uint32_t new_rows, uint32_t new_cols) {
  TIERD_CHECK(new_cols % kQuantBlock == 0);
  rows = new_rows;
  cols = new_cols;
  const size_t values = size_t{rows} * cols;
  q.resize(values);
  scale.resize(values / kQuantBlock);
  sum.resize(values / kQuantBlock);
  first_sum.resize(values / kQuantBlock);
}

const ComputeKernels& best_kernels() {
  return *sets().kernels[0];
}

const ComputeKernels* kernels_by_name(std::string_view name) {
  for (size_t i = 0; i < sets().count; ++i) {
    if (sets().names[i] == name) return sets().kernels[i];
  }
  return nullptr;
}

std::span<const std::string_view> kernel_names() {
  return std::span(sets().names).first(sets().count);
}

Result<const ComputeKernels*> choose_kernels(const std::string& name) {
  if (name == "auto") return &best_kernels();
  if (const ComputeKernels* const kernels = kernels_by_name(name)) return kernels;
  return Error{Code::unsupported, "compute.kernels", "this processor does not support " + name};
}

}  // namespace tierd
