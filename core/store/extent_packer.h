// Makes the bytes of each extent from the source's tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/manifest.h"

namespace tierd {

class ExtentPacker {
 public:
  // `plan` was made for `source`; both must outlive the packer.
  ExtentPacker(const TensorSource& source, const Manifest& plan);

  // Returns how many extents from this one on are best packed together: several for bundles, their pieces and
  // channels, whose columns are adjacent in the source; otherwise 1.
  uint32_t run_of(uint32_t extent) const;
  // Fills `out` with `count` consecutive extents of one run, and `checksums` with their checksums. Any
  // thread. Errors: the source's; corrupt for a value that the stored encoding cannot hold.
  Status pack(uint32_t first, uint32_t count, std::span<std::byte> out, std::span<uint64_t> checksums) const;

 private:
  // The content of an extent: a neuron of a site or a piece of it, or a resident tensor.
  struct Content {
    const StoredSite* site = nullptr;
    uint32_t neuron = 0;
    uint32_t piece = 0;
    const ResidentTensor* resident = nullptr;
  };

  // Packs extents of one run, from `first` on: a run of rows or an expert; bundles of a site, or one piece of
  // them; channels of a layer group.
  Status pack_neurons(const Rows& cut, uint32_t first, uint32_t count, std::span<std::byte> out) const;
  Status pack_neurons(const Bundles& bundles, uint32_t first, uint32_t count, std::span<std::byte> out) const;
  Status pack_neurons(const Columns& cut, uint32_t first, uint32_t count, std::span<std::byte> out) const;
  Status pack_neurons(const Experts& cut, uint32_t first, uint32_t count, std::span<std::byte> out) const;
  // Packs piece `piece` of these bundles, each `stride` bytes behind the one before.
  Status pack_piece(const StoredSite& site, uint32_t piece, std::span<const uint32_t> neurons,
                    uint64_t stride, std::span<std::byte> out) const;
  // Packs columns of parts that are stacked, each `stride` bytes behind the one before, in the site's
  // encoding. Columns of blocks are encoded again, because the source's blocks run along the rows.
  Status pack_columns(const StoredSite& site, std::span<const SitePart> parts,
                      std::span<const uint32_t> columns, uint64_t stride, std::span<std::byte> out) const;
  // Packs the whole tensor into row groups.
  Status pack_matrix(const TensorInfo& tensor, Encoding encoding, std::span<std::byte> out) const;
  Status pack_resident(const ResidentTensor& resident, std::span<std::byte> out) const;
  // Reads the rows of a neuron, in plain order and in its encoding.
  Status read_rows(const StoredSite& site, const Rows& cut, uint32_t neuron, std::span<std::byte> out) const;

  const TensorSource& source_;
  const Manifest& plan_;
  std::vector<Content> contents_;  // one for each extent
  // For sites with a channel order: the source's column of each channel.
  std::map<const StoredSite*, std::vector<uint32_t>> orders_;
};

}  // namespace tierd
