// A model of which a share of each matrix is zero, as after pruning: for measurements and tests in which the
// positions of the zeros do not matter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/tensor_source.h"

namespace tierd {

class ZeroedSource final : public TensorSource {
 public:
  // `of` with about `percent` per cent zeros, at pseudo-random positions, in those matrices of the layers
  // whose encoding can represent zero exactly (core/model/layout/bitmap.h).
  ZeroedSource(std::unique_ptr<TensorSource> of, uint32_t percent) : of_(std::move(of)), percent_(percent) {}

  const ModelConfig& config() const override { return of_->config(); }
  const std::vector<TensorInfo>& tensors() const override { return of_->tensors(); }
  const Vocab* vocab() const override { return of_->vocab(); }
  std::string fingerprint() const override;
  std::string path() const override { return of_->path(); }
  Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override;

 private:
  std::unique_ptr<TensorSource> of_;
  uint32_t percent_;
};

}  // namespace tierd
