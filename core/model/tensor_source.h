// Where the weights of a model come from, whatever the file format: our tensor names, plain row order.
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

struct TensorInfo {
  std::string name;  // ours, see required_tensors
  Encoding encoding = Encoding::f32;
  uint64_t rows = 0;  // 1 for a vector
  uint64_t cols = 0;
  uint32_t file = 0;    // index into the source's files
  uint64_t offset = 0;  // of the first byte in that file
  // Where a file keeps several tensors in one, taking turns: runs of so many bytes, which begin so many bytes
  // apart. 0: all bytes follow each other.
  uint64_t run_bytes = 0;
  uint64_t run_stride = 0;
  std::string theirs = {};  // its name in a Hugging Face folder; empty where it comes from another format
  uint64_t bytes() const { return encoded_bytes(encoding, rows * cols); }
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;

  virtual const ModelConfig& config() const = 0;
  // All required tensors and no others, checked against required_tensors: shapes fit, bytes lie inside the
  // files.
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  // nullptr when the source has no tokenizer.
  virtual const Vocab* vocab() const = 0;
  // Changes whenever a file of the source is replaced: paths, sizes, modification times. For cache keys.
  virtual std::string fingerprint() const = 0;
  virtual std::string path() const = 0;
  // A model without weights is taken to have so many per cent zeros in each matrix of its layers; there is
  // nothing where weights can be read.
  virtual std::optional<uint32_t> assumed_zeros_percent() const { return std::nullopt; }
  bool has_weights() const { return !assumed_zeros_percent().has_value(); }

  // Reads `out.size()` bytes from `offset` within the tensor. Any thread. Errors: io_error, corrupt (short
  // file).
  virtual Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const = 0;

  const TensorInfo* find(std::string_view name) const;
  // The whole tensor as f32, row by row.
  Result<std::vector<float>> read_f32(const TensorInfo& tensor) const;
};

}  // namespace tierd
