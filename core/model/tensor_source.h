// The source of a model's weights, for any file format: tierd's tensor names, plain row order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/config.h"
#include "core/model/layout/encoding.h"
#include "core/model/text/vocab.h"

namespace tierd {

class StoredForm;

struct TensorInfo {
  std::string name;  // tierd's, see required_tensors
  Encoding encoding = Encoding::f32;
  uint64_t rows = 0;  // 1 for a vector
  uint64_t cols = 0;
  uint32_t file = 0;    // index into the source's files
  uint64_t offset = 0;  // of the first byte in that file
  // If set, the file holds it in another form than as its values in rows, one after the other.
  std::shared_ptr<const StoredForm> form = {};
  std::string theirs = {};  // name in a Hugging Face folder; empty for other formats
  uint64_t bytes() const { return encoded_bytes(encoding, rows * cols); }
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;

  virtual const ModelConfig& config() const = 0;
  // Returns exactly the tensors of required_tensors: shapes match, bytes are inside the files.
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  // Returns nullptr if the source has no tokenizer.
  virtual const Vocab* vocab() const = 0;
  // Returns a key that changes with any file of the source (its path, size or time of modification).
  virtual std::string fingerprint() const = 0;
  virtual std::string path() const = 0;
  // Returns the assumed share of zeros, in per cent, of each matrix of the layers, for a model without
  // weights; nothing for one with weights.
  virtual std::optional<uint32_t> assumed_zeros_percent() const { return std::nullopt; }
  bool has_weights() const { return !assumed_zeros_percent().has_value(); }

  // Reads `out.size()` bytes from `offset` within the tensor. Any thread. Errors: io_error, corrupt (short
  // file).
  virtual Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const = 0;

  const TensorInfo* find(std::string_view name) const;
  // Reads the whole tensor as f32, row by row.
  Result<std::vector<float>> read_f32(const TensorInfo& tensor) const;
};

}  // namespace tierd
