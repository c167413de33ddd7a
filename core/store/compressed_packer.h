// The bytes of each extent of a plan whose neurons may be compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"
#include "core/model/layout/neuron_codec.h"
#include "core/model/tensor_source.h"
#include "core/store/extent_packer.h"
#include "core/store/manifest.h"

namespace tierd {

// It packs as ExtentPacker does, and compresses what the plan has compressed.
class CompressedPacker {
 public:
  // `plan` was made for `source`, by `codec` where that is its compression; all must outlive this.
  CompressedPacker(const TensorSource& source, const Manifest& plan, const NeuronCodec* codec);
  CompressedPacker(const CompressedPacker&) = delete;
  CompressedPacker& operator=(const CompressedPacker&) = delete;

  uint32_t run_of(uint32_t extent) const { return dense_.run_of(extent); }
  // Errors, besides those of the source and the codec: corrupt, where a neuron is not as large as planned,
  // since the source has changed; plugin_fault, where that can be the codec's doing.
  Status pack(uint32_t first, uint32_t count, std::span<std::byte> out, std::span<uint64_t> checksums) const;

 private:
  const StoredSite* compressed_site_of(uint32_t extent) const;
  // The neuron has another size than it was planned with.
  Error changed(const StoredSite& site, uint32_t neuron, uint64_t bytes) const;
  Status compress_run(const StoredSite& site, uint32_t first, uint32_t count, std::span<std::byte> out) const;

  const TensorSource& source_;
  const Manifest& plan_;
  const NeuronCodec* const codec_;
  const Manifest dense_plan_;
  const ExtentPacker dense_;
  std::vector<const StoredSite*> compressed_;  // in the order of their extents
};

}  // namespace tierd
