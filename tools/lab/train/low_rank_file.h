// Low-rank predictors of a model's layers in a safetensors file, as train_predictors writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/result.h"
#include "core/model/config.h"
#include "core/model/layout/encoding.h"
#include "tools/lab/train/low_rank.h"

namespace tierd {

// A layer N that has a predictor has the tensors layers.N.ffn.a [rank x d_model] and layers.N.ffn.b [d_ff x
// rank], F32, F16 or BF16, and perhaps layers.N.ffn.bias [d_ff]; a layer without a predictor has none of
// these tensors. Other tensors are not read.
class LowRankFile {
 public:
  // Errors: those of the header; corrupt for tensors of another shape, or for one of a and b without the
  // other; unsupported for another dtype; not_found where no layer has a predictor.
  static Result<LowRankFile> open(const std::string& path, const ModelConfig& config);

  bool has(uint32_t layer) const { return layers_[layer].has_value(); }
  // The layer must have a predictor. Errors: io_error.
  Result<LowRank> read(uint32_t layer) const;

 private:
  struct Tensor {
    Encoding encoding = Encoding::f32;
    uint64_t offset = 0;  // in the file
  };
  struct Layer {
    uint32_t rank = 0;
    Tensor a, b;
    std::optional<Tensor> bias;
  };
  LowRankFile(File file, const ModelConfig& config)
      : file_(std::move(file)), d_model_(config.d_model), d_ff_(config.d_ff), layers_(config.n_layers) {}
  Result<std::vector<float>> values(const Tensor& tensor, uint64_t count) const;

  File file_;
  uint32_t d_model_, d_ff_;
  std::vector<std::optional<Layer>> layers_;
};

}  // namespace tierd
