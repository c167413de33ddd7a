// Plans a store: the position of each neuron, from the configuration and the encodings alone. No weights are
// needed, so a modelled run can plan a store that was never made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/model/config.h"
#include "core/model/tensor_source.h"
#include "core/store/manifest.h"
#include "core/store/write_options.h"

namespace tierd {

// Memory that an extent takes in the manifest, in its text and in the tables of the program that uses it.
inline constexpr uint64_t kBytesOfExtent = 128;

inline constexpr uint64_t kMinNeuronBytes = 16 << 10;   // the lower bound of the default, for toy models
inline constexpr uint64_t kMaxNeuronBytes = 512 << 10;  // the default from kNeuronsPerModel times this on
inline constexpr uint64_t kNeuronsPerModel = 512;
inline constexpr uint64_t kLargestNeuronBytes = 16 << 20;  // the largest that may be requested

// Returns the sites of a model in the order of one step: names, groups, layers, shapes, parts and aliases.
// Encodings, neurons and extents have their defaults. `config` is valid.
std::vector<StoredSite> site_shapes(const ModelConfig& config, Layout layout,
                                    Bundling bundling = Bundling::row_column, uint32_t layer_group = 1,
                                    ExpertCut experts = ExpertCut::whole);

// Returns the number of sites that site_shapes returns.
uint64_t n_sites(const ModelConfig& config, Layout layout, ExpertCut experts = ExpertCut::whole);

// Returns the required tensors that belong to no site.
std::vector<TensorSpec> resident_shapes(const ModelConfig& config);

// Returns the number of row groups in a neuron: the most within [target/2, target] whose padding to 4096 is
// at most 3 %, otherwise the number with the least padding; at least one, at most all `groups` of the site.
uint32_t groups_per_neuron(uint64_t bytes_per_group, uint32_t groups, uint64_t target_bytes);

// Returns the plan without vocabulary, provenance and checksums. Parts of one site, and channels of one
// group, in different encodings become f32, which loses nothing. Errors: invalid_argument (an option out of
// range or without its layout, a tensor missing or of the wrong shape), unsupported (rows not a multiple of
// the encoding's block; bundles in a block encoding, whose blocks run across a column; a mixture in bundles;
// an expert that is too large; more extents than a store can number).
Result<Manifest> plan_layout(const ModelConfig& config, std::span<const TensorInfo> tensors,
                             const WriteOptions& options);

// Places all resident tensors and neurons in the file, one behind the other. All sites must be cut.
void place_extents(Manifest& plan);

}  // namespace tierd
