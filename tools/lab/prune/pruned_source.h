// A model with some tensors replaced, from which a store or a GGUF file is written.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/disk.h"
#include "core/model/tensor_source.h"

namespace tierd {

// Keeps the replaced tensors in a nameless file: it takes no memory, and the system removes it when the
// program ends in any way, so that no partial file can be taken for a complete one. All other data, tokenizer
// and configuration included, is that of the base model, which must outlive this.
//
// A GGUF file would not do: an OPT, Falcon or Phi cannot be written as one.
class PrunedSource : public TensorSource {
 public:
  // `replaced` names tensors of `base`. Matrices keep the encodings f32, f16 and bf16, and become f16 if they
  // are in blocks; vectors become f32. The file is made beside `path`, and its space reserved. Errors:
  // no_space, io_error.
  static Result<std::unique_ptr<PrunedSource>> create(const TensorSource& base,
                                                      const std::vector<std::string>& replaced,
                                                      const std::string& path);

  // Encodes and writes one replaced tensor, with as many values as it had. Each must be put once before
  // anything is read. One caller at a time. Errors: invalid_argument (values that its encoding cannot
  // represent), io_error.
  Status put(const std::string& name, std::span<const float> values);

  // Return the number of weights of the matrices that were put, and the share of them that is zero.
  uint64_t weights() const { return weights_; }
  double share_of_zeros() const { return static_cast<double>(zeros_) / static_cast<double>(weights_); }

  const ModelConfig& config() const override { return base_.config(); }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Vocab* vocab() const override { return base_.vocab(); }
  // Covers the replaced tensors too.
  std::string fingerprint() const override;
  std::string path() const override { return base_.path(); }
  Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override;

 private:
  PrunedSource(const TensorSource& base, OpenFile file) : base_(base), file_(std::move(file)) {}

  const TensorSource& base_;
  Disk disk_;
  OpenFile file_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, uint64_t> offsets_;  // of the replaced tensors in the file
  uint64_t weights_ = 0;
  uint64_t zeros_ = 0;
  std::string checksums_;  // of the replaced tensors, in the order of put()
};

}  // namespace tierd
