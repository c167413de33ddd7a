// The bytes of each extent, made from the source's tensors.
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
  // `plan` was made for `source`; both must outlive this.
  ExtentPacker(const TensorSource& source, const Manifest& plan);

  // How many extents from this one on are best packed together: those of bundles and their pieces, and of
  // channels, whose columns lie side by side in the source.
  uint32_t run_of(uint32_t extent) const;
  // Fills `out` with `count` consecutive extents of one run, and `checksums` with theirs. Any thread.
  // Errors: the source's; corrupt, for a value that another encoding than the source's cannot hold.
  Status pack(uint32_t first, uint32_t count, std::span<std::byte> out, std::span<uint64_t> checksums) const;

 private:
  // What an extent holds: a neuron of a site or a piece of it, or a resident tensor.
  struct Content {
    const StoredSite* site = nullptr;
    uint32_t neuron = 0;
    uint32_t piece = 0;
    const ResidentTensor* resident = nullptr;
  };

  // Extents of one run, from `first` on: a run of rows or an expert; bundles of a site, or one piece of them;
  // channels of a group of layers.
  Status pack_neurons(const Rows& cut, uint32_t first, uint32_t count, std::span<std::byte> out) const;
  Status pack_neurons(const Bundles& bundles, uint32_t first, uint32_t count, std::span<std::byte> out) const;
  Status pack_neurons(const Columns& cut, uint32_t first, uint32_t count, std::span<std::byte> out) const;
  Status pack_neurons(const Experts& cut, uint32_t first, uint32_t count, std::span<std::byte> out) const;
  // Piece `piece` of these bundles, each `stride` bytes behind the one before.
  Status pack_piece(const StoredSite& site, uint32_t piece, std::span<const uint32_t> neurons,
                    uint64_t stride, std::span<std::byte> out) const;
  // Columns of parts that lie one under the other, each `stride` bytes behind the one before, in the site's
  // encoding. Those in blocks are encoded anew: the source's blocks run along the rows.
  Status pack_columns(const StoredSite& site, std::span<const SitePart> parts,
                      std::span<const uint32_t> columns, uint64_t stride, std::span<std::byte> out) const;
  // The whole tensor in row groups.
  Status pack_matrix(const TensorInfo& tensor, Encoding encoding, std::span<std::byte> out) const;
  Status pack_resident(const ResidentTensor& resident, std::span<std::byte> out) const;
  // The rows of a neuron, in plain order and its encoding.
  Status read_rows(const StoredSite& site, const Rows& cut, uint32_t neuron, std::span<std::byte> out) const;

  const TensorSource& source_;
  const Manifest& plan_;
  std::vector<Content> contents_;  // one an extent
  // Which columns of the source the channels of a site are, where they have an order.
  std::map<const StoredSite*, std::vector<uint32_t>> orders_;
};

}  // namespace tierd
