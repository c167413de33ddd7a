// In which encoding a store keeps each matrix.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/store/manifest.h"
#include "core/store/tensor_table.h"
#include "core/store/write_options.h"

namespace tierd {

// Sets the encodings of the plan's sites and their parts, whose shapes it checks against the tensors. What
// `options` ask for; of what they leave open, the source's own:
// - rows: each part its own, where each is of whole row groups; else float32, which loses nothing
// - experts: each part its own, where that of all experts is the same; else float32
// - columns, which have one encoding, the same in all layers of a group: the source's one, if there is one
//   and it has columns; float32 where some are floats; else q4_0 where some are of four bits, and q8_0
// And adds the editions that are asked for, of bundles and experts.
// Errors: those of the tensors, a K-quant asked for where there are columns, rows that do not fit what is
// asked for, an edition that has no fewer bits than the one before (unsupported, where that is the model's
// own).
Status choose_encodings(Manifest& plan, const TensorTable& tensors, const WriteOptions& options);

// The sites that may have editions, in each of these encodings: one site after the other, with the extents
// that it has in the plan. Errors, from `origin`: as above; unsupported, where no site may have any.
Result<std::vector<StoredSite>> editions_of(const Manifest& plan, const std::vector<Encoding>& encodings,
                                            std::string_view origin);

// The encodings that a list such as "q8_0,q4_0" names, none for "none". Error: invalid_argument, from
// `origin`, which names the one that is unknown.
Result<std::vector<Encoding>> parse_editions(std::string_view list, std::string_view origin);

// Whether the site may be stored in several encodings, of which a quantizer chooses one for each neuron. Rows
// are used whole, channels of several layers lie among each other.
bool may_have_editions(const StoredSite& site);

// Whether a value of each part takes fewer bits than in the other encodings, of as many parts.
bool has_fewer_bits(const Encodings& encodings, const Encodings& than);

// The most row groups whose multiples every part begins with, where parts differ in encoding. It is 0 where
// rows of one group belong to two parts.
uint32_t most_groups_together(const Rows& rows);

// Whether `site` is cut into columns and is the first of the sites whose channels of one number are stored
// side by side.
bool begins_layer_group(const Manifest& plan, const StoredSite& site);
// Those sites: one operator's, in the order of the layers of the group that `first` begins.
std::vector<StoredSite*> layer_group_of(std::vector<StoredSite>& sites, const StoredSite& first);

}  // namespace tierd
