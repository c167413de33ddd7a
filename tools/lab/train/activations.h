// The activations of a model's feed-forward networks that `tier-profile` recorded, read row by row: only the
// rows that a caller reads are in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/result.h"
#include "core/model/config.h"
#include "core/model/layout/encoding.h"

namespace tierd {

// A safetensors file with two tensors for each layer N: layers.N.ffn.x, F16 or F32 [tokens x d_model], the
// input of the feed-forward network after its norm; layers.N.ffn.contribution, F16 or F32 [tokens x d_ff],
// |hidden| times the norm of the neuron's column of down, which is 0 exactly where the neuron is not active.
class Activations {
 public:
  // Errors: those of the header; not_found for a tensor that the model's layers need; corrupt for a tensor of
  // another shape, or with another number of tokens than the tensors before it; unsupported for another
  // dtype.
  static Result<Activations> open(const std::string& path, const ModelConfig& config);

  const std::string& path() const { return file_.path(); }
  uint32_t tokens() const { return tokens_; }

  // Reads the rows of these tokens, which ascend, as f32: `x` is [tokens x d_model], `contributions`
  // [tokens x d_ff]. Errors: io_error; corrupt for a value that is not finite, or a contribution below 0.
  Status read_inputs(uint32_t layer, std::span<const uint32_t> tokens, std::span<float> x) const;
  Status read_contributions(uint32_t layer, std::span<const uint32_t> tokens,
                            std::span<float> contributions) const;

 private:
  struct Rows {
    std::string name;
    Encoding encoding = Encoding::f16;
    uint64_t offset = 0;  // in the file
    uint32_t cols = 0;
  };
  struct Layer {
    Rows x, contribution;
  };
  explicit Activations(File file) : file_(std::move(file)) {}
  Status read(const Rows& rows, std::span<const uint32_t> tokens, float least, std::span<float> out) const;

  File file_;
  std::vector<Layer> layers_;
  uint32_t tokens_ = 0;
};

}  // namespace tierd
