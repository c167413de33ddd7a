// A model that is only a shape (configs/models/*.toml), without weights: its store can be planned, and a run
// of it modelled in virtual time.
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
  // Opens a shape; `path` as in read_shape. Matrices are f16, vectors and learned positions f32.
  // `zeros_percent`: assumed share of zeros in each matrix of the layers, as if pruned. Errors: those of
  // read_shape; invalid_argument for more than 100 %.
  static Result<std::unique_ptr<ShapeSource>> open(const std::string& path, uint32_t zeros_percent);

  const ModelConfig& config() const override { return config_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Vocab* vocab() const override { return nullptr; }
  std::string fingerprint() const override;
  std::string path() const override { return path_; }
  std::optional<uint32_t> assumed_zeros_percent() const override { return zeros_percent_; }
  // Always fails with `unsupported`.
  Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override;

 private:
  ShapeSource() = default;

  std::string path_;
  ModelConfig config_;
  uint32_t zeros_percent_ = 0;
  std::vector<TensorInfo> tensors_;
};

}  // namespace tierd
