// A model of any shape with random weights: for measurements, which need the bytes of a 7B model but none of
// its wit. Nothing is kept: every range of bytes is generated when it is read, always the same for a seed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

class SyntheticSource : public TensorSource {
 public:
  // Every matrix in `encoding`, vectors and learned positions in f32. Weights have a standard deviation of
  // about 1 / (2 sqrt(columns)), norms are 1: activations stay finite through any number of layers. The
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
