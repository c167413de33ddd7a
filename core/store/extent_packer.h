// The bytes of each extent, made from the source's tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/manifest.h"

namespace tierd {

class ExtentPacker {
 public:
  // `plan` was made for `source`; both must outlive this.
  ExtentPacker(const TensorSource& source, const Manifest& plan);

  // Fills `out` (exactly the extent's bytes) and returns its checksum. Any thread. Errors are the source's.
  Result<uint64_t> pack(uint32_t extent, std::span<std::byte> out) const;

 private:
  // What an extent holds: a neuron of a site, or a resident tensor.
  struct Content {
    const StoredSite* site = nullptr;
    uint32_t neuron = 0;
    const ResidentTensor* resident = nullptr;
  };

  Status pack_neuron(const StoredSite& site, uint32_t neuron, std::span<std::byte> out) const;
  Status pack_resident(const ResidentTensor& resident, std::span<std::byte> out) const;
  // Rows [first, first + count) of the stacked parts, in plain order and the site's encoding.
  Status read_rows(const StoredSite& site, uint32_t first, uint32_t count, std::span<std::byte> out) const;

  const TensorSource& source_;
  std::vector<Content> contents_;  // one an extent
};

}  // namespace tierd
