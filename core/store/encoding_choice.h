// The choice of the encoding in which a store keeps each matrix.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/store/manifest.h"
#include "core/store/tensor_table.h"
#include "core/store/write_options.h"

namespace tierd {

// Sets the encodings of the plan's sites and their parts, whose shapes it checks against the tensors: the
// encodings that `options` name, otherwise the source's own:
// - rows: each part its own if each is a whole number of row groups; else f32, which loses nothing
// - experts: each part its own if all experts agree; else f32
// - columns, which have one encoding in all layers of a group: the source's if it is the same for all and no
//   encoding that columns cannot have; f32 if some are floats; else q4_0 if some have four bits, and q8_0
// Also adds the requested editions of bundles and experts.
// Errors: those of the tensors, a requested K-quant for columns, rows that are no multiple of the requested
// encoding's block, an edition that has no fewer bits than the one before (unsupported if that is the model's
// own).
Status choose_encodings(Manifest& plan, const TensorTable& tensors, const WriteOptions& options);

// Returns the sites that may have editions in each of these encodings: one site after the other, with the
// site's extents in the plan. Errors, from `origin`: as above; unsupported if no site may have editions.
Result<std::vector<StoredSite>> editions_of(const Manifest& plan, const std::vector<Encoding>& encodings,
                                            std::string_view origin);

// Parses a list of encodings such as "q8_0,q4_0"; "none" is an empty list. Error: invalid_argument, from
// `origin`, naming the unknown word.
Result<std::vector<Encoding>> parse_editions(std::string_view list, std::string_view origin);

// Returns whether the site may be stored in several encodings, of which a quantizer chooses one for each
// neuron. Not rows, which are used whole, nor channels, which are interleaved with other layers'.
bool may_have_editions(const StoredSite& site);

// Returns whether a value of each part takes fewer bits than in the other encodings, of as many parts.
bool has_fewer_bits(const Encodings& encodings, const Encodings& than);

// Returns the greatest number of row groups of which the first group of every part is a multiple, for parts
// that differ in encoding. Returns 0 if rows of one group belong to two parts.
uint32_t most_groups_together(const Rows& rows);

// Returns whether `site` is the first of the sites whose channels of one number are contiguous on flash.
bool begins_layer_group(const Manifest& plan, const StoredSite& site);
// Returns the sites of that group: one operator's, in the order of the layers, from `first` on.
std::vector<StoredSite*> layer_group_of(std::vector<StoredSite>& sites, const StoredSite& first);

}  // namespace tierd
