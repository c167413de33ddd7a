// Columns of a source's tensors, whose files keep rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/manifest.h"

namespace tierd {

// Returns the tensor of a part of a site that was planned for this source.
const TensorInfo& tensor_of(const TensorSource& source, const SitePart& part);

// Returns all tensors of a part: one for each expert if the site is cut into experts, else one.
std::vector<const TensorInfo*> tensors_of(const TensorSource& source, const StoredSite& site,
                                          const SitePart& part);

// Reads columns of a tensor of any encoding, decoded: value (r, columns[i]) goes to out[i * apart + r]. Reads
// from each row the range from the least to the greatest column. Any thread. Errors are the source's.
Status read_columns(const TensorSource& source, const TensorInfo& tensor, std::span<const uint32_t> columns,
                    uint64_t apart, std::span<float> out);
// The same for `rows` rows from `first` on: value (first + r, columns[i]) goes to out[i * apart + r].
Status read_columns(const TensorSource& source, const TensorInfo& tensor, uint64_t first, uint64_t rows,
                    std::span<const uint32_t> columns, uint64_t apart, std::span<float> out);

}  // namespace tierd
