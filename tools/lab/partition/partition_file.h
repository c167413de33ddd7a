// What a partition is made of, and what it is written as: safetensors files, with the same metadata about
// which model they are for. The first one (tier-profile --frequencies) has for each sparse site SITE
//
//   SITE.frequency  [neurons]  F32  share of the tokens for which the neuron is active, 0 to 1
//   SITE.bytes      [1]        F32  what a neuron takes of a memory
//
// and nothing else; the second one
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

// F32 tells whole numbers apart up to here, and homes are written so.
inline constexpr uint32_t kMostDimms = 1u << 24;

struct Frequencies {
  std::vector<PartitionSite> sites;  // in the order of their tensors
  SafetensorsMetadata metadata;
};
// Errors name the file: those of File and of the format, invalid_argument for what a tensor is or holds.
Result<Frequencies> read_frequencies(const std::string& path);

// In place of what was there, when it is whole. Errors: io_error, no_space.
Status write_partition(const std::string& path, const Frequencies& of, const Partition& partition);

}  // namespace tierd
