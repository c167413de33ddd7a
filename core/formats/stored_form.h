// Forms in which a file holds a tensor other than as its values in rows, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/file.h"
#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

class StoredForm {
 public:
  virtual ~StoredForm() = default;

  // Reads `out.size()` bytes from `offset` within the tensor, in the tensor's encoding. Any thread.
  virtual Status read(std::span<const File> files, const TensorInfo& tensor, uint64_t offset,
                      std::span<std::byte> out) const = 0;
  // Returns whether the files have all that it reads.
  virtual bool fits(std::span<const File> files, const TensorInfo& tensor) const = 0;
};

// A part of a tensor that interleaves several: `bytes` of this one, then the same `stride` bytes further on.
class Runs : public StoredForm {
 public:
  Runs(uint64_t bytes, uint64_t stride) : bytes_(bytes), stride_(stride) {}
  Status read(std::span<const File> files, const TensorInfo& tensor, uint64_t offset,
              std::span<std::byte> out) const override;
  bool fits(std::span<const File> files, const TensorInfo& tensor) const override;

 private:
  Status gather(const File& file, const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const;

  uint64_t bytes_;
  uint64_t stride_;
};

// A vector in another encoding, to whose values a number is added. The tensor is f32.
class WithSum : public StoredForm {
 public:
  WithSum(Encoding encoding, float added) : encoding_(encoding), added_(added) {}
  Status read(std::span<const File> files, const TensorInfo& tensor, uint64_t offset,
              std::span<std::byte> out) const override;
  bool fits(std::span<const File> files, const TensorInfo& tensor) const override;

 private:
  Encoding encoding_;
  float added_;
};

// MXFP4 as gpt-oss is published: the codes of a row, two values a byte in their order, and apart from them
// the scale of each 32 values. The tensor is mxfp4, whose blocks have the scale first, and byte i has the
// codes of values i and i + 16. Its row r is row first + r * step of the file.
class ApartMxfp4 : public StoredForm {
 public:
  struct Scales {
    uint32_t file = 0;
    uint64_t offset = 0;
  };
  ApartMxfp4(Scales scales, uint64_t first, uint64_t step) : scales_(scales), first_(first), step_(step) {}
  Status read(std::span<const File> files, const TensorInfo& tensor, uint64_t offset,
              std::span<std::byte> out) const override;
  bool fits(std::span<const File> files, const TensorInfo& tensor) const override;

 private:
  Scales scales_;
  uint64_t first_;
  uint64_t step_;
};

// A matrix in columns: value (r, c) is value c * pitch + first + r * step of the file.
class Transposed : public StoredForm {
 public:
  Transposed(uint64_t pitch, uint64_t first, uint64_t step) : pitch_(pitch), first_(first), step_(step) {}
  Status read(std::span<const File> files, const TensorInfo& tensor, uint64_t offset,
              std::span<std::byte> out) const override;
  bool fits(std::span<const File> files, const TensorInfo& tensor) const override;

 private:
  uint64_t pitch_;
  uint64_t first_;
  uint64_t step_;
};

}  // namespace tierd
