// A model that is only a shape (configs/models/*.toml): what a store of it would be like can be planned, and
// a run of it played in virtual time, without any weights.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

class ShapeSource final : public TensorSource {
 public:
  // `path` as read_shape takes it. Matrices are of f16, vectors and learned positions of f32.
  // `zeros_percent`: of each matrix of the layers, as if it had been pruned. Errors: those of read_shape;
  // invalid_argument for more than 100 %.
  static Result<std::unique_ptr<ShapeSource>> open(const std::string& path, uint32_t zeros_percent);

  const ModelConfig& config() const override { return config_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Vocab* vocab() const override { return nullptr; }
  std::string fingerprint() const override;
  std::string path() const override { return path_; }
  std::optional<uint32_t> assumed_zeros_percent() const override { return zeros_percent_; }
  // Error: unsupported, always.
  Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override;

 private:
  ShapeSource() = default;

  std::string path_;
  ModelConfig config_;
  uint32_t zeros_percent_ = 0;
  std::vector<TensorInfo> tensors_;
};

}  // namespace tierd
