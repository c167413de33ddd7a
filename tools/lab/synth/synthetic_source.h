// A model of any shape with random weights, for measurements that need the bytes of a large model but not its
// answers. Nothing is stored: every range of bytes is made when it is read, and depends on the seed alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

class SyntheticSource : public TensorSource {
 public:
  // Every matrix is in `encoding`, vectors and learned positions in f32. Weights have a standard deviation of
  // about 1 / (2 sqrt(columns)) and norms are 1, so activations stay finite through any number of layers. The
  // vocabulary is a sentencepiece one: <unk>, <s>, </s>, the 256 bytes, then made-up words. Errors:
  // unsupported (columns that are not a multiple of the encoding's block), invalid_argument (a vocabulary too
  // small).
  static Result<std::unique_ptr<SyntheticSource>> make(ModelConfig config, Encoding encoding, uint64_t seed);

  const ModelConfig& config() const override { return config_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Vocab* vocab() const override { return &vocab_; }
  std::string fingerprint() const override { return fingerprint_; }
  std::string path() const override { return path_; }
  Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override;

 private:
  SyntheticSource() = default;

  ModelConfig config_;
  uint64_t seed_ = 0;
  std::vector<TensorInfo> tensors_;
  Vocab vocab_;
  std::string fingerprint_;
  std::string path_;
};

}  // namespace tierd
