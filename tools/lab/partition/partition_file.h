// The input and the output of a partition: safetensors files, with the same metadata about their model. The
// input (tier-profile --frequencies) has for each sparse site SITE only
//
//   SITE.frequency  [neurons]  F32  share of the tokens for which the neuron is active, 0 to 1
//   SITE.bytes      [1]        F32  bytes of a neuron in a memory
//
// and the output
//
//   SITE.home       [neurons]  F32  number of the DIMM, from 0
//   SITE.hot        [neurons]  F32  1: on the GPU from the start, else 0
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/safetensors.h"
#include "tools/lab/partition/partition_problem.h"

namespace tierd {

// F32, in which homes are written, represents all integers up to here.
inline constexpr uint32_t kMostDimms = 1u << 24;

struct Frequencies {
  std::vector<PartitionSite> sites;  // in the order of their tensors
  SafetensorsMetadata metadata;
};
// Errors name the file: those of File and of the format, invalid_argument for a tensor's shape or values.
Result<Frequencies> read_frequencies(const std::string& path);

// Replaces the file when the new one is complete. Errors: io_error, no_space.
Status write_partition(const std::string& path, const Frequencies& of, const Partition& partition);

}  // namespace tierd
