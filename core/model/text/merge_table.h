// Ranked merges by the tokens of their parts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/merge.h"

namespace tierd {

using MergeTable = std::unordered_map<uint64_t, Merged>;  // left << 32 | right

// Reads merges "left right" by rank; the first of equal ones counts. `tokens`: all pieces. Error, naming
// `origin`: corrupt, for a merge of missing pieces.
Result<MergeTable> merge_table(const std::vector<std::string>& merges,
                               const std::unordered_map<std::string_view, uint32_t>& tokens,
                               std::string_view origin);

// Merges the symbols of a word as far as the table allows.
void merge_by_rank(std::vector<MergeSymbol>& symbols, const MergeTable& merges);

}  // namespace tierd
