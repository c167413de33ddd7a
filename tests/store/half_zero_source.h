// A model of which half of each matrix is zero, as pruning leaves it.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout/bitmap.h"
#include "core/model/tensor_source.h"

namespace tierd {

// `of` with zeros for what the number of a weight's place says: about `percent` of those of the layers'
// matrices in encodings that have zeros of their own.
class HalfZeroSource final : public TensorSource {
 public:
  HalfZeroSource(std::unique_ptr<TensorSource> of, uint32_t percent = 50)
      : of_(std::move(of)), percent_(percent) {}

  const ModelConfig& config() const override { return of_->config(); }
  const std::vector<TensorInfo>& tensors() const override { return of_->tensors(); }
  const Vocab* vocab() const override { return of_->vocab(); }
  std::string fingerprint() const override {
    return of_->fingerprint() + " zeroed " + std::to_string(percent_);
  }
  std::string path() const override { return of_->path(); }
  Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
    TIERD_TRY(of_->read(tensor, offset, out));
    const auto bitmap = Bitmap::of(tensor.encoding, false);
    if (!bitmap || tensor.rows == 1 || !tensor.name.starts_with("layers.")) return {};
    const bool blocks = is_quantized(tensor.encoding);
    for (uint64_t i = 0; i < out.size(); ++i) {
      const uint64_t at = offset + i;
      if (blocks && at % block_bytes(tensor.encoding) < 2) continue;  // the scale
      if (hash(at / bitmap->element_bytes) % 100 < percent_) out[i] = std::byte{0};
    }
    return {};
  }

 private:
  static uint64_t hash(uint64_t x) {
    x = (x + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
    return (x ^ x >> 31) * 0x94d049bb133111eb >> 33;
  }

  std::unique_ptr<TensorSource> of_;
  uint32_t percent_;
};

}  // namespace tierd
