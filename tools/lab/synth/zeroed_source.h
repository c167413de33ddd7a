// A model of which a share of each matrix is zero, as pruning leaves it: for measurements and tests, where
// which weights those are does not matter.
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
  // `of` with about `percent` per cent zeros, by the places of the weights, in the layers' matrices whose
  // encoding has zeros of its own (core/model/layout/bitmap.h).
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
