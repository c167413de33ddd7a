#include "tiers/gpu/team_work.h"

#include <cstring>

#include "tiers/dram/linear.h"

namespace tierd {
namespace {

constexpr uint64_t kCopiedInNs = 8;   // bytes that one thread copies in a nanosecond, about
constexpr uint64_t kEncodedInNs = 2;  // encoded bytes that one thread writes in a nanosecond, about

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

void TeamWork::encode(std::span<const Encode> pieces) {
  uint64_t bytes = 0;
  for (const Encode& of : pieces) bytes += of.recoding->piece(of.piece).to_bytes;
  team_->run(pieces.size(), 1, bytes / kEncodedInNs, [&](uint64_t begin, uint64_t end, uint32_t) {
    for (const Encode& of : pieces.subspan(begin, end - begin))
      of.recoding->encode(kernels_, of.piece, of.from, of.to);
  });
}

}  // namespace tierd
