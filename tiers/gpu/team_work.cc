#include "tiers/gpu/team_work.h"

#include <cstring>

#include "tiers/dram/linear.h"

namespace tierd {
namespace {

constexpr uint64_t kCopiedInNs = 8;  // bytes, by one thread, about

}  // namespace

void TeamWork::linear(const PackedMatrix& matrix, const float* x, uint32_t rows, float* y) {
  tierd::linear(kernels_, *team_, matrix, x, rows, y);
}

void TeamWork::copy(std::span<const Copy> copies) {
  uint64_t bytes = 0;
  for (const Copy& copy : copies) bytes += copy.bytes;
  team_->run(copies.size(), 1, bytes / kCopiedInNs, [&](uint64_t begin, uint64_t end, uint32_t) {
    for (const Copy& copy : copies.subspan(begin, end - begin)) std::memcpy(copy.to, copy.from, copy.bytes);
  });
}

}  // namespace tierd
