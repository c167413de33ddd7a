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

// Packs as ExtentPacker does, and compresses the sites that the plan compresses.
class CompressedPacker {
 public:
  // `plan` was made for `source`, with `codec` if its compression is a codec; all must outlive the packer.
  CompressedPacker(const TensorSource& source, const Manifest& plan, const NeuronCodec* codec);
  CompressedPacker(const CompressedPacker&) = delete;
  CompressedPacker& operator=(const CompressedPacker&) = delete;

  uint32_t run_of(uint32_t extent) const { return dense_.run_of(extent); }
  // Errors, besides those of the source and the codec: corrupt if a neuron has another size than planned
  // because the source has changed; plugin_fault if the codec may be the cause.
  Status pack(uint32_t first, uint32_t count, std::span<std::byte> out, std::span<uint64_t> checksums) const;

 private:
  const StoredSite* compressed_site_of(uint32_t extent) const;
  // Returns the error for a neuron whose size differs from the planned one.
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
